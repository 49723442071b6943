import { randomUUID } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { TandemError } from '../../machines/errors.ts';
import type { AudioFormat } from '../../machines/utterances.ts';
import { decodeToWav, type FfmpegProgram, findFfmpeg } from './ffmpeg.ts';
import { isContainer, rawG711Format } from './raw-g711.ts';
import { readSampleLayout, type SampleLayout } from './sample-layout.ts';

/**
 * An uploaded file as samples on disk for `ListeningPlane.listenToFile`. WAV and AU with 16-bit PCM or G.711 are read
 * in place, as is raw G.711. ffmpeg decodes other formats to 16 kHz.
 */
export interface AudioFile {
  source: { filePath: string; offset: number; bytes: number; format: AudioFormat };
  durationMs: number;
  /** Such as `wav`, `mp3` or `matroska`. */
  container: string;
  isIncomplete: boolean;
  /** Removes temporary files, but not the upload. Idempotent. */
  dispose(): Promise<void>;
}

export interface OpenAudioFileOptions {
  filePath: string;
  /** Name given by the sender. Only its extension identifies raw G.711. */
  fileName?: string | null;
  mediaType?: string | null;
  tempDir: string;
  signal: AbortSignal;
  /** Default: the system's, if it is on the PATH, else the bundled one. */
  ffmpeg?: FfmpegProgram;
  /** Default: 70 minutes. */
  longestMs?: number;
}

/** 25 MB are about an hour. Much longer audio is not a plausible upload. */
const LONGEST_MS = 70 * 60_000;

/**
 * Opens a file, decoding it if necessary.
 * @throws TandemError `AUDIO_EMPTY`, `AUDIO_NOT_READABLE`, `AUDIO_STREAM_MISSING`, `AUDIO_TOO_LONG`; the signal's
 * reason when aborted
 */
export async function openAudioFile(options: OpenAudioFileOptions): Promise<AudioFile> {
  const { filePath, signal, longestMs = LONGEST_MS } = options;
  signal.throwIfAborted();
  const layout = (await layoutOf(filePath)) ?? (await rawLayout(options));
  const file =
    layout === null
      ? await decode(options, longestMs)
      : { ...audioFileOf(filePath, layout), isIncomplete: layout.isTruncated, dispose: async () => {} };
  try {
    if (file.source.bytes === 0) throw new TandemError('AUDIO_EMPTY', 'The file contains no audio.');
    if (file.durationMs > longestMs) throw tooLong(longestMs);
    return file;
  } catch (error) {
    await file.dispose();
    throw error;
  }
}

/** @throws TandemError `AUDIO_EMPTY` */
async function layoutOf(filePath: string): Promise<SampleLayout | null> {
  const handle = await open(filePath, 'r');
  try {
    const { size } = await handle.stat();
    if (size === 0) throw new TandemError('AUDIO_EMPTY', 'The file is empty.');
    return await readSampleLayout(handle, size);
  } finally {
    await handle.close();
  }
}

async function rawLayout({ filePath, fileName, mediaType }: OpenAudioFileOptions): Promise<SampleLayout | null> {
  const format = rawG711Format({ fileName: fileName ?? '', mediaType: mediaType ?? '' });
  if (format === null) return null;
  const handle = await open(filePath, 'r');
  try {
    const { size } = await handle.stat();
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(12), 0, 12, 0);
    if (isContainer(buffer.subarray(0, bytesRead))) return null;
    return { container: 'raw', offset: 0, bytes: size, format, isTruncated: false };
  } finally {
    await handle.close();
  }
}

async function decode(
  { filePath, tempDir, signal, ffmpeg }: OpenAudioFileOptions,
  longestMs: number,
): Promise<AudioFile> {
  const wavPath = join(tempDir, `${randomUUID()}.wav`);
  const dispose = () => rm(wavPath, { force: true });
  try {
    const program = ffmpeg ?? (await findFfmpeg());
    const decoded = await decodeToWav({ program, inputPath: filePath, wavPath, longestMs, signal });
    const layout = await layoutOf(wavPath);
    // ffmpeg writes a WAV header with the first samples, so it decoded none.
    if (layout === null) throw new TandemError('AUDIO_NOT_READABLE', 'The audio in the file cannot be decoded.');
    const file = audioFileOf(wavPath, layout);
    const { container, promisedMs } = decoded;
    const isShort = promisedMs !== null && promisedMs - file.durationMs > Math.max(1_000, promisedMs * 0.05);
    const isIncomplete = decoded.isDamaged || (isShort && promisedMs <= longestMs);
    return { ...file, container, isIncomplete, dispose };
  } catch (error) {
    await dispose();
    signal.throwIfAborted();
    throw error;
  }
}

function audioFileOf(filePath: string, { container, offset, bytes, format }: SampleLayout) {
  const sampleBytes = format.encoding === 'linear16' ? 2 : 1;
  const frames = Math.floor(bytes / (sampleBytes * format.channels));
  return {
    source: { filePath, offset, bytes: frames * sampleBytes * format.channels, format },
    durationMs: (frames * 1000) / format.sampleRateHz,
    container,
  };
}

function tooLong(longestMs: number): TandemError {
  const message = `The audio is longer than ${Math.round(longestMs / 60_000)} minutes. Send it in parts.`;
  return new TandemError('AUDIO_TOO_LONG', message, { details: { longest_seconds: longestMs / 1000 } });
}
