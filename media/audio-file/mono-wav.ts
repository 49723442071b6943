import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import type { AudioFormat } from '../../machines/utterances.ts';
import { ALAW_TO_LINEAR, MULAW_TO_LINEAR } from '../codecs/g711.ts';
import { WAV_HEADER_BYTES, WavFileWriter } from '../wav.ts';
import type { AudioFile } from './audio-file.ts';

export interface MonoWav {
  durationMs: number;
  /** Size of the file. */
  bytes: number;
  /** Hash of the samples. */
  sha256: Buffer;
}

/**
 * Writes a decoded file as mono WAV at the same rate, averaging two channels. For background threads. @throws the file
 * system's error
 */
export async function writeMonoWav(source: AudioFile['source'], wavPath: string): Promise<MonoWav> {
  const { format, offset, bytes } = source;
  const input = await open(source.filePath, 'r');
  const output = await WavFileWriter.open(wavPath, { channels: 1, sampleRateHz: format.sampleRateHz });
  const hash = createHash('sha256');
  const frameBytes = sampleBytesOf(format) * format.channels;
  try {
    const chunk = Buffer.alloc(CHUNK_BYTES);
    for (let at = 0; at < bytes; ) {
      const { bytesRead } = await input.read(chunk, 0, Math.min(CHUNK_BYTES, bytes - at), offset + at);
      const samples = toMono(chunk.subarray(0, bytesRead), format);
      if (samples.length === 0) break;
      const octets = new Uint8Array(samples.buffer, 0, samples.byteLength);
      hash.update(octets);
      await output.append(octets);
      at += samples.length * frameBytes;
    }
  } finally {
    await closeBoth(input, output);
  }
  const durationMs = (output.dataBytes * 1000) / (2 * format.sampleRateHz);
  return { durationMs, bytes: output.dataBytes + WAV_HEADER_BYTES, sha256: hash.digest() };
}

/** A multiple of the frame size of every format. */
const CHUNK_BYTES = 2 ** 18;

function sampleBytesOf({ encoding }: AudioFormat): number {
  return encoding === 'linear16' ? 2 : 1;
}

function toMono(bytes: Buffer, format: AudioFormat): Int16Array<ArrayBuffer> {
  const { encoding, channels } = format;
  const frames = Math.floor(bytes.length / (sampleBytesOf(format) * channels));
  const table = encoding === 'alaw' ? ALAW_TO_LINEAR : MULAW_TO_LINEAR;
  const mono = new Int16Array(frames);
  for (let frame = 0; frame < frames; frame++) {
    let sum = 0;
    for (let channel = 0; channel < channels; channel++) {
      const index = frame * channels + channel;
      sum += encoding === 'linear16' ? bytes.readInt16LE(index * 2) : table[bytes[index]!]!;
    }
    mono[frame] = Math.round(sum / channels);
  }
  return mono;
}

async function closeBoth(input: FileHandle, output: WavFileWriter): Promise<void> {
  try {
    await input.close();
  } finally {
    await output.finish();
  }
}
