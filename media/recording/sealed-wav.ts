import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import type { FileSeal } from '../../runtime/sealed-file/format.ts';
import { openSealedFile, type SealedReader } from '../../runtime/sealed-file/reader.ts';
import { repairSealedFile, SealedFileWriter } from '../../runtime/sealed-file/writer.ts';
import { repairWav, WAV_HEADER_BYTES, type WavFormat, wavDurationMs, wavHeader, withDataBytes } from '../wav.ts';
import type { AudioFileWriter } from './recording-file.ts';

/**
 * Recordings in sealed files. The 44-byte WAV header has zero lengths, because a sealed chunk is never rewritten.
 * Readers compute the lengths from the file size.
 */

export class SealedWavWriter implements AudioFileWriter {
  readonly #file: SealedFileWriter;

  private constructor(file: SealedFileWriter) {
    this.#file = file;
  }

  /** @throws the file system's error */
  static async open(filePath: string, format: WavFormat, seal: FileSeal): Promise<SealedWavWriter> {
    const file = await SealedFileWriter.open(filePath, seal);
    await file.append(wavHeader(format, 0));
    return new SealedWavWriter(file);
  }

  get dataBytes(): number {
    return this.#file.bytes - WAV_HEADER_BYTES;
  }

  async append(chunk: Uint8Array): Promise<void> {
    await this.#file.append(chunk);
  }

  /** Nothing to rewrite. */
  async rewriteHeader(): Promise<void> {}

  async finish(): Promise<void> {
    await this.#file.finish();
  }

  async abandon(): Promise<void> {
    await this.#file.abandon();
  }
}

/** Corrects the header, if the file is one of our WAV files. */
export function withWavLengths(reader: SealedReader): SealedReader {
  const { sizeBytes } = reader;
  return {
    sizeBytes,
    async *read({ start, end }) {
      if (start < WAV_HEADER_BYTES) {
        const stored = await buffer(reader.read({ start: 0, end: WAV_HEADER_BYTES - 1 }));
        yield withDataBytes(stored, sizeBytes - WAV_HEADER_BYTES).subarray(start, end + 1);
      }
      yield* reader.read({ start: Math.max(start, WAV_HEADER_BYTES), end });
    },
  };
}

/**
 * Completes the recording of a killed or failed writer: a plain one with `repairWav`, a sealed one with
 * `repairSealedFile`. A sealed one without a chunk becomes an empty stereo file. Returns the length for players; null
 * if the file is not a recording.
 * @throws SealedFileError; the file system's error
 */
export async function repairRecording(
  filePath: string,
  unlock: ((header: Uint8Array) => FileSeal) | null,
): Promise<RecordingLength | null> {
  const bytes = unlock === null ? await repairClear(filePath) : await repairSealed(filePath, unlock);
  return bytes === null ? null : { bytes, durationMs: wavDurationMs(await headerOf(filePath, unlock), bytes) };
}

interface RecordingLength {
  /** Size of the WAV file, header included. */
  bytes: number;
  durationMs: number;
}

async function headerOf(filePath: string, unlock: ((header: Uint8Array) => FileSeal) | null): Promise<Buffer> {
  const { size } = await stat(filePath);
  const read = async (range: { start: number; end: number }) => createReadStream(filePath, range);
  const reader = unlock === null ? { read } : await openSealedFile({ sizeBytes: size, read }, unlock);
  return await buffer(await reader.read({ start: 0, end: WAV_HEADER_BYTES - 1 }));
}

async function repairClear(filePath: string): Promise<number | null> {
  const { outcome, bytes } = await repairWav(filePath);
  return outcome === 'not-wav' ? null : bytes;
}

async function repairSealed(filePath: string, unlock: (header: Uint8Array) => FileSeal): Promise<number> {
  let seal: FileSeal | null = null;
  const { bytes } = await repairSealedFile(filePath, (header) => {
    seal = unlock(header);
    return seal;
  });
  if (bytes >= WAV_HEADER_BYTES || seal === null) return bytes;
  const empty = await SealedWavWriter.open(filePath, { channels: 2, sampleRateHz: 8000 }, seal);
  await empty.finish();
  return WAV_HEADER_BYTES;
}
