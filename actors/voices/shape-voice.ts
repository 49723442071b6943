import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { TandemError } from '../../machines/errors.ts';
import type { ShapedVoice } from '../../machines/voice.machine.ts';
import { openAudioFile } from '../../media/audio-file/audio-file.ts';
import type { ListeningPlane } from '../../media/listening-plane.ts';
import { WAV_HEADER_BYTES } from '../../media/wav.ts';
import { Gate } from '../../runtime/gate.ts';
import { raceAbort } from '../../runtime/waiting.ts';
import type { SpeechRecognition } from '../../speech/speech-recognition.ts';
import type { AvailableVoice, SpeechSynthesis } from '../../speech/speech-synthesis.ts';
import { cloneRecipe, fitVoice } from '../../speech/voices/fit-voice.ts';
import { languageCode } from '../../speech/voices/language-names.ts';
import type { VoiceMeasures } from '../../speech/voices/voice-measures.ts';
import type { Sql } from '../../storage/database.ts';
import type { ObjectStore } from '../../storage/objects.ts';
import {
  getUndeletedVoice,
  listVoiceSamples,
  type VoiceRow,
  type VoiceSampleRow,
} from '../../storage/queries/voices.ts';
import type { Logger } from '../logger.ts';
import { recogniseFile } from '../stt/file-recognition.ts';
import { copyReference } from './reference-files.ts';
import { runVoiceTask } from './voice-thread.ts';

export interface VoiceShaper {
  /** Null: the voice was deleted. @throws errors that a retry may resolve; the signal's reason */
  shape(voiceId: string, signal: AbortSignal): Promise<ShapedVoice | null>;
  close(): Promise<void>;
}

export interface VoiceShaperOptions {
  sql: Sql;
  objects: Pick<ObjectStore, 'read'>;
  synthesis: Pick<SpeechSynthesis, 'voices'>;
  listening: Pick<ListeningPlane, 'listenToFile'>;
  recognition: Pick<SpeechRecognition, 'open' | 'languages'>;
  tempDir: string;
  logger: Logger;
}

/** Threads at a time, so that calls do not suffer. */
const MOST_AT_ONCE = 2;
/** More speech does not improve the voice. */
const MAX_MEASURED_MS = 10 * 60_000;

export function createVoiceShaper(options: VoiceShaperOptions): VoiceShaper {
  const { sql, objects, tempDir } = options;
  const gate = new Gate({ inAll: MOST_AT_ONCE });

  async function shapeNow(voiceId: string, signal: AbortSignal): Promise<ShapedVoice | null> {
    const row = await getUndeletedVoice(sql, voiceId);
    if (row === null) return null;
    let unusable: string | null = null;
    for (const samples of sampleGroups(await listVoiceSamples(sql, voiceId))) {
      const folder = join(tempDir, `making-${randomUUID()}`);
      await mkdir(folder, { recursive: true, mode: 0o700 });
      try {
        const wavPaths = await fetchSamples(samples, { objects, folder, signal });
        const measured = await runVoiceTask('measure', { wavPaths }, signal);
        if (measured.isUsable) {
          const best = samples[measured.best]!;
          return await shapeOf(row, { measures: measured.measures, best, folder, signal }, options);
        }
        unusable ??= measured.error;
      } catch (error) {
        if (error instanceof TandemError && error.code === 'NOT_FOUND') return LOST;
        throw error;
      } finally {
        await rm(folder, { recursive: true, force: true, maxRetries: 3 });
      }
    }
    return { isUsable: false, errorCode: 'VOICE_SAMPLE_UNUSABLE', error: unusable ?? 'There are no samples.' };
  }

  return {
    shape: (voiceId, signal) => gate.run(() => shapeNow(voiceId, signal), { signal }),
    close: () => gate.idle(),
  };
}

/** Clones the voice if an engine can and the sample's text is known. Otherwise fits the nearest voice. */
async function shapeOf(
  { id, language }: VoiceRow,
  {
    measures,
    best,
    folder,
    signal,
  }: { measures: VoiceMeasures; best: VoiceSampleRow; folder: string; signal: AbortSignal },
  options: VoiceShaperOptions,
): Promise<ShapedVoice> {
  const available = options.synthesis.voices();
  const cloning = available.find((voice) => voice.clones && speaks(voice, language));
  if (cloning !== undefined) {
    const path = join(folder, 'reference.wav');
    await copyReference(options.objects, { objectKey: best.objectKey, path, signal });
    const text = await transcribe({ id, language, path }, options, signal);
    const reference = { path: best.objectKey, text };
    const recipe = cloneRecipe(cloning, { measures, language, reference });
    if (text !== '') return { isUsable: true, recipe, measures, approximate: false };
  }
  const recipe = fitVoice(measures, { language, available });
  if (recipe === null) return { isUsable: false, errorCode: 'INTERNAL', error: NO_ENGINE };
  return { isUsable: true, recipe, measures, approximate: true };
}

/** Downloads only the part of each sample that is used, because a sample may be hours long. */
async function fetchSamples(
  samples: readonly VoiceSampleRow[],
  { objects, folder, signal }: Pick<VoiceShaperOptions, 'objects'> & { folder: string; signal: AbortSignal },
): Promise<string[]> {
  const paths: string[] = [];
  for (const { id, objectKey, bytes, durationMs } of samples) {
    const path = join(folder, `${id}.wav`);
    const usedShare = Math.min(1, MAX_MEASURED_MS / durationMs);
    const end = WAV_HEADER_BYTES + Math.ceil((bytes - WAV_HEADER_BYTES) * usedShare) - 1;
    const sample = await untilAborted(objects.read({ key: objectKey, start: 0, end }), signal);
    await pipeline(sample, createWriteStream(path), { signal });
    paths.push(path);
  }
  return paths;
}

/** Waits for the store until the signal aborts, and closes a stream that opens later. */
async function untilAborted(opening: Promise<Readable>, signal: AbortSignal): Promise<Readable> {
  try {
    return await raceAbort(opening, signal);
  } catch (error) {
    opening.then(
      (stream) => stream.destroy(),
      () => {},
    );
    throw error;
  }
}

/** Best effort: '' if no recogniser understands the sample. */
async function transcribe(
  { id, language, path }: { id: string; language: string; path: string },
  { listening, recognition, tempDir, logger }: VoiceShaperOptions,
  signal: AbortSignal,
): Promise<string> {
  try {
    if (!recognition.languages().some(({ code }) => code === language)) return '';
    const audio = await openAudioFile({ filePath: path, tempDir, signal });
    const request = { ...PLAIN_TRANSCRIPTION, languages: [language] };
    const file = await recogniseFile({ transcriptionId: id, request, audio, listening, recognition, signal });
    return file.text.trim();
  } catch (error) {
    signal.throwIfAborted();
    logger.warn({ voiceId: id, err: error }, 'voice sample not recognised; fitting the voice instead');
    return '';
  }
}

/**
 * Groups samples, longest first, into as much speech as is measured at once. A later group is used only if the earlier
 * ones fail, so that bad samples cannot block a voice.
 */
function sampleGroups(samples: readonly VoiceSampleRow[]): VoiceSampleRow[][] {
  const groups: VoiceSampleRow[][] = [];
  let totalMs = Number.POSITIVE_INFINITY;
  for (const sample of samples) {
    totalMs += Math.min(sample.durationMs, MAX_MEASURED_MS);
    if (totalMs > MAX_MEASURED_MS) {
      groups.push([]);
      totalMs = Math.min(sample.durationMs, MAX_MEASURED_MS);
    }
    groups.at(-1)!.push(sample);
  }
  return groups;
}

function speaks({ language: tag }: AvailableVoice, language: string): boolean {
  return languageCode(tag) === language;
}

const LOST: ShapedVoice = {
  isUsable: false,
  errorCode: 'INTERNAL',
  error: 'The samples were lost because of an internal error. Create the voice again.',
};

const NO_ENGINE = 'No installed speech engine speaks this language. Ask your operator to install one.';

const PLAIN_TRANSCRIPTION = {
  diarize: false,
  minSpeakers: null,
  maxSpeakers: null,
  keywords: [],
  scriptCorrection: false,
  minSplitMs: 20_000,
};
