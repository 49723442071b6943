import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { RecognitionEngine } from '../recognizer.ts';
import type { SynthesisEngine } from '../synthesizer.ts';
import type { LockedModel } from './lock-file.ts';

/** Compares a model's files with what was fetched. Returns one line per difference. */
export async function checkFiles(folder: string, { files }: LockedModel): Promise<string[]> {
  const problems: string[] = [];
  for (const [name, { bytes, sha256 }] of Object.entries(files)) {
    const path = join(folder, name);
    const found = await stat(path).catch(() => null);
    if (found === null) problems.push(`${name} is missing`);
    else if (found.size !== bytes) problems.push(`${name} has ${found.size} bytes, not ${bytes}`);
    else if ((await sha256Of(path)) !== sha256) problems.push(`${name} has changed since it was fetched`);
  }
  return problems;
}

/** Loads and runs a model. Returns the problems, if any. */
export async function loadingProblems(engine: RecognitionEngine, model: string): Promise<string[]> {
  const description = (await engine.describe()).find((described) => described.model === model);
  if (description === undefined) return ['it is not there any more'];
  try {
    const recognizer = await engine.load(description);
    try {
      await recognizer.begin({ language: description.languages[0]!, keywords: [], isLive: false });
      await recognizer.write(new Int16Array(SECOND_OF_SILENCE));
      await recognizer.finish();
    } finally {
      await recognizer.close();
    }
    return [];
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}

/** The same for a synthesis model. A cloning one is only loaded, because there is no reference recording. */
export async function speakingProblems(engine: SynthesisEngine, model: string): Promise<string[]> {
  const voice = (await engine.voices()).find((listed) => listed.model === model);
  if (voice === undefined) return ['it is not there any more'];
  const owner = new AbortController();
  try {
    const synthesizer = await engine.start({ model, signal: owner.signal });
    try {
      const words = [{ written: '1', spoken: '1', phonemes: null }];
      const clause = { words, voice: voice.name, speed: 1, pitchSemitones: 0, pitchRange: 1, reference: null };
      if (!voice.clones) for await (const _ of synthesizer.speak(clause, owner.signal));
    } finally {
      await synthesizer.close();
    }
    return [];
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)];
  }
}

/** A model may load and still fail to run. */
const SECOND_OF_SILENCE = 16_000;

async function sha256Of(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}
