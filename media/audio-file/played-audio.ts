import { randomUUID } from 'node:crypto';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { TandemError } from '../../machines/errors.ts';
import { decodeToWav, type FfmpegProgram, findFfmpeg } from './ffmpeg.ts';
import { readSampleLayout } from './sample-layout.ts';

interface PlayedAudioOptions {
  filePath: string;
  tempDir: string;
  longestMs: number;
  signal: AbortSignal;
  /** Default: the system's, if it is on the PATH, else the bundled one. */
  ffmpeg?: FfmpegProgram;
}

/**
 * Decodes a file for playback to a leg, in a confined process: linear, 16 kHz, mono.
 * @throws TandemError `AUDIO_EMPTY`, `AUDIO_NOT_READABLE`, `AUDIO_STREAM_MISSING`, `AUDIO_TOO_LONG`; the signal's
 * reason when aborted
 */
export async function readPlayedAudio(options: PlayedAudioOptions): Promise<Int16Array<ArrayBuffer>> {
  const { filePath, tempDir, longestMs, signal } = options;
  signal.throwIfAborted();
  const wavPath = join(tempDir, `${randomUUID()}.wav`);
  try {
    const program = options.ffmpeg ?? (await findFfmpeg());
    const format = { sampleRateHz: SAMPLE_RATE_HZ, channels: 1 } as const;
    await decodeToWav({ program, inputPath: filePath, wavPath, longestMs, signal, format });
    const samples = await samplesOf(wavPath);
    if (samples.length === 0) throw new TandemError('AUDIO_EMPTY', 'The file contains no audio.');
    if (samples.length <= (longestMs / 1000) * SAMPLE_RATE_HZ) return samples;
    const longestSeconds = Math.round(longestMs / 1000);
    throw new TandemError('AUDIO_TOO_LONG', `The audio is longer than ${longestSeconds} seconds. Play it in parts.`, {
      details: { longest_seconds: longestSeconds },
    });
  } catch (error) {
    signal.throwIfAborted();
    throw error;
  } finally {
    await rm(wavPath, { force: true });
  }
}

const SAMPLE_RATE_HZ = 16_000;

async function samplesOf(wavPath: string): Promise<Int16Array<ArrayBuffer>> {
  const handle = await open(wavPath, 'r');
  try {
    const { size } = await handle.stat();
    const layout = await readSampleLayout(handle, size);
    // ffmpeg writes a WAV header with the first samples, so it decoded none.
    if (layout === null) throw new TandemError('AUDIO_NOT_READABLE', 'The audio in the file cannot be decoded.');
    const samples = new Int16Array(Math.floor(layout.bytes / 2));
    await handle.read(new Uint8Array(samples.buffer), 0, samples.byteLength, layout.offset);
    return samples;
  } finally {
    await handle.close();
  }
}
