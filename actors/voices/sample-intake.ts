import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { TandemError } from '../../machines/errors.ts';
import { type AudioFile, openAudioFile } from '../../media/audio-file/audio-file.ts';
import type { ObjectStore } from '../../storage/objects.ts';
import type { VoiceSampleRow } from '../../storage/queries/voices.ts';
import type { GivenSamples } from './voice-desk.ts';
import { runVoiceTask } from './voice-thread.ts';

export interface SampleBounds {
  leastMs: number;
  mostMs: number;
}

/** Total length of the samples of an instant clone. */
export const CLONED_BOUNDS: SampleBounds = { leastMs: 5_000, mostMs: 600_000 };
/** Total length of the samples of a professional voice. */
export const PROFESSIONAL_BOUNDS: SampleBounds = { leastMs: 60_000, mostMs: 3 * 3_600_000 };
/** Length at which a professional voice is processed without a request. */
export const PLENTY_MS = 30 * 60_000;

/** A decoded sample as a mono WAV file, not stored yet. */
export interface PreparedSample extends Omit<VoiceSampleRow, 'voiceId' | 'createdAt' | 'objectKey'> {
  wavPath: string;
}

/**
 * Decodes uploaded samples and drops duplicates. The client decides on number and size, so they are decoded one by one,
 * in low-priority processes and threads.
 * @throws TandemError the `AUDIO_` codes, with the file; `AUDIO_TOO_LONG` for the total; the signal's reason
 */
export async function prepareSamples(
  { files, folder, signal }: GivenSamples,
  { mostMs }: Pick<SampleBounds, 'mostMs'>,
): Promise<PreparedSample[]> {
  const opened: AudioFile[] = [];
  try {
    let totalMs = 0;
    for (const [index, { path, name, mediaType }] of files.entries()) {
      const options = { filePath: path, fileName: name, mediaType, tempDir: folder, signal };
      const file = await openAudioFile({ ...options, longestMs: mostMs - totalMs }).catch((error: unknown) => {
        if (error instanceof TandemError && error.code === 'AUDIO_TOO_LONG') throw tooLong(mostMs);
        throw files.length === 1 ? error : namingFile(error, index);
      });
      opened.push(file);
      totalMs += file.durationMs;
    }
    const wavPaths = opened.map(() => join(folder, `${randomUUID()}.wav`));
    const conversion = { files: opened.map(({ source }, index) => ({ source, wavPath: wavPaths[index]! })) };
    const converted = await runVoiceTask('convert', conversion, signal);
    const bySound = new Map<string, PreparedSample>();
    for (const [index, { durationMs, bytes, sha256 }] of converted.entries()) {
      const sound = Buffer.from(sha256);
      const sample = { id: randomUUID(), durationMs: Math.max(1, Math.round(durationMs)), bytes, sha256: sound };
      bySound.set(sound.toString('hex'), { ...sample, wavPath: wavPaths[index]! });
    }
    return [...bySound.values()];
  } finally {
    for (const file of opened) await file.dispose();
  }
}

/** Stores none if one fails. @throws the store's error; the signal's reason */
export async function storeSamples(
  objects: ObjectStore,
  samples: readonly PreparedSample[],
  { workspaceId, voiceId, signal }: { workspaceId: string; voiceId: string; signal: AbortSignal },
): Promise<Omit<VoiceSampleRow, 'voiceId' | 'createdAt'>[]> {
  const folder = voiceFolder({ workspaceId, voiceId });
  const keyed = samples.map((sample) => ({ ...sample, objectKey: `${folder}/${sample.id}.wav` }));
  try {
    for (const { objectKey: key, wavPath: sourcePath } of keyed) {
      signal.throwIfAborted();
      await objects.putFile({ key, sourcePath });
    }
    return keyed.map(({ wavPath: _, ...sample }) => sample);
  } catch (error) {
    // Include the failed one: it may have been stored anyway.
    await deleteObjects(
      objects,
      keyed.map(({ objectKey }) => objectKey),
    );
    // If the client left, its files are gone: report that instead.
    signal.throwIfAborted();
    throw error;
  }
}

export function voiceFolder({ workspaceId, voiceId }: { workspaceId: string; voiceId: string }): string {
  return `voices/${workspaceId}/${voiceId}`;
}

/** Deletes objects, best effort. */
export async function deleteObjects(objects: ObjectStore, keys: readonly string[]): Promise<void> {
  await Promise.allSettled(keys.map((key) => objects.delete(key)));
}

/** @throws TandemError `VOICE_SAMPLE_UNUSABLE` */
export function requireEnough(totalMs: number, { leastMs }: SampleBounds): void {
  if (totalMs >= leastMs) return;
  const message = `The voice needs at least ${inWords(leastMs)} of speech; there are ${Math.floor(totalMs / 1000)} seconds.`;
  throw new TandemError('VOICE_SAMPLE_UNUSABLE', message, { details: { least_seconds: leastMs / 1000 } });
}

export function tooLong(mostMs: number): TandemError {
  const message = `The samples are longer than ${inWords(mostMs)} in all. Send the best of them.`;
  return new TandemError('AUDIO_TOO_LONG', message, { details: { longest_seconds: mostMs / 1000 } });
}

function inWords(ms: number): string {
  if (ms >= 3_600_000) return `${ms / 3_600_000} hours`;
  if (ms > 60_000) return `${ms / 60_000} minutes`;
  return ms === 60_000 ? 'a minute' : `${ms / 1000} seconds`;
}

/** Identifies the file by number, because its name may be the speaker's. */
function namingFile(error: unknown, index: number): unknown {
  if (!(error instanceof TandemError)) return error;
  const details = [{ path: `files.${index}`, message: error.message }];
  return new TandemError(error.code, `File ${index + 1}: ${error.message}`, { cause: error, details });
}
