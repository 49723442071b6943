import { createHash, randomUUID } from 'node:crypto';
import { mkdir, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Clock } from '../../runtime/clock.ts';
import { Gate } from '../../runtime/gate.ts';
import { LATE, within } from '../../runtime/waiting.ts';
import type { SpeechFormat, SpeechSynthesis } from '../../speech/speech-synthesis.ts';
import { readScript } from '../../speech/text/read-script.ts';
import type { Script } from '../../speech/text/script.ts';
import { passageFor } from '../../speech/voices/passages.ts';
import { USUAL_STYLE, type VoiceRecipe } from '../../speech/voices/voice-recipe.ts';
import type { ObjectStore } from '../../storage/objects.ts';
import type { Logger } from '../logger.ts';

/** Example sentences of voices, for users who choose one. */
export interface SpokenSamples {
  /**
   * Returns the key of the voice's sample, and creates it if missing. Null: it failed or takes too long. A changed
   * voice has a new key.
   */
  keyOf(voice: SpokenVoice): Promise<string | null>;
  close(): Promise<void>;
}

export interface SpokenVoice {
  recipe: VoiceRecipe;
  folder: string;
  /**
   * Records the key with the voice, before and after the object exists, so that deleting the voice finds it even after
   * a crash. False: the voice was deleted. Default: the voice is permanent.
   */
  note?: (key: string) => Promise<boolean>;
}

export interface SpokenSamplesOptions {
  synthesis: Pick<SpeechSynthesis, 'speak'>;
  objects: Pick<ObjectStore, 'stat' | 'putFile' | 'delete'>;
  tempDir: string;
  clock: Clock;
  logger: Logger;
}

const FORMAT: SpeechFormat = { encoding: 'MP3', sampleRateHz: 24_000 };
/** Longest that a request waits; synthesis continues. */
const WAIT_MS = 8_000;
const GIVE_UP_MS = 60_000;
/** Time before a failed engine is tried again. */
const AFTER_FAILURE_MS = 30_000;
/** Leaves engines to synthesis requests while a user browses all voices. */
const MOST_AT_ONCE = 2;

export function createSpokenSamples({
  synthesis,
  objects,
  tempDir,
  clock,
  logger,
}: SpokenSamplesOptions): SpokenSamples {
  /** By key; failures stay for a while. */
  const making = new Map<string, Promise<string | null>>();
  const closing = new AbortController();
  const forgetting = new Set<unknown>();
  const gate = new Gate({ inAll: MOST_AT_ONCE });

  async function makeInTurn(key: string, voice: SpokenVoice): Promise<string | null> {
    try {
      return await gate.run(() => make(key, voice), { signal: closing.signal });
    } catch {
      // The service is closing.
      return null;
    }
  }

  async function make(key: string, { recipe, note = async () => true }: SpokenVoice): Promise<string | null> {
    const sourcePath = join(tempDir, `${randomUUID()}.mp3`);
    const ended = new AbortController();
    const timer = clock.setTimeout(() => ended.abort(new Error('a sample took too long')), GIVE_UP_MS);
    try {
      await mkdir(tempDir, { recursive: true, mode: 0o700 });
      const signal = AbortSignal.any([ended.signal, closing.signal]);
      const request = { script: sampleScript(recipe.language), recipe, style: USUAL_STYLE, format: FORMAT };
      const file = await open(sourcePath, 'wx', 0o600);
      try {
        for await (const { audio } of synthesis.speak(request, signal)) await file.appendFile(audio);
        if ((await file.stat()).size === 0) throw new Error('nothing was said');
      } finally {
        await file.close();
      }
      const isKept = (await note(key)) && (await store(key, { sourcePath, note }));
      making.delete(key);
      return isKept ? key : null;
    } catch (error) {
      if (!closing.signal.aborted) {
        logger.warn(
          { engine: recipe.engine, voice: recipe.engineVoice, err: error },
          'voice sample synthesis produced nothing',
        );
        forgetLater(key);
      }
      return null;
    } finally {
      clock.clearTimeout(timer);
      await rm(sourcePath, { force: true });
    }
  }

  /** False: the voice was deleted before the object existed, so its deletion missed the object. */
  async function store(
    key: string,
    { sourcePath, note }: { sourcePath: string; note: NonNullable<SpokenVoice['note']> },
  ): Promise<boolean> {
    await objects.putFile({ key, sourcePath });
    if (await note(key)) return true;
    await objects.delete(key);
    return false;
  }

  function forgetLater(key: string): void {
    const timer = clock.setTimeout(() => {
      forgetting.delete(timer);
      making.delete(key);
    }, AFTER_FAILURE_MS);
    forgetting.add(timer);
  }

  return {
    async keyOf(voice) {
      const key = `${voice.folder}/${fingerprintOf(voice.recipe)}.mp3`;
      if ((await objects.stat(key)) !== null) return key;
      if (closing.signal.aborted) return null;
      const running = making.get(key) ?? makeInTurn(key, voice);
      making.set(key, running);
      const made = await within(running, { ms: WAIT_MS, clock });
      return made === LATE ? null : made;
    },

    async close() {
      closing.abort(new Error('the server is closing'));
      for (const timer of forgetting) clock.clearTimeout(timer);
      await Promise.allSettled(making.values());
    },
  };
}

function fingerprintOf(recipe: VoiceRecipe): string {
  const spoken = { recipe, script: sampleScript(recipe.language), style: USUAL_STYLE, format: FORMAT };
  return createHash('sha256').update(JSON.stringify(spoken)).digest('hex').slice(0, 40);
}

/** First sentence of the language's reading passage (BCP 47). */
function sampleScript(language: string): Script {
  const { text } = passageFor(language);
  const [first] = new Intl.Segmenter('und', { granularity: 'sentence' }).segment(text);
  return readScript(first?.segment.trim() || text, { language });
}
