import { endianness } from 'node:os';
import { WavFileWriter } from '../wav.ts';

/**
 * Takes the recording's chunks without ever making the caller wait, and writes them one after the other. What the disk
 * cannot keep up with is bounded: then, and on any disk error, the recording fails once and later chunks are dropped.
 */

interface RecordingFileOptions {
  filePath: string;
  /** Called at most once, with text that is fit for a log: the file system's error code, not the path. */
  onFailed: (detail: string) => void;
}

/** Half a minute of audio waiting for the disk. */
const MOST_BYTES_WAITING = 1_000_000;
/** Chunks between two rewrites of the header, about five seconds: less to repair after a kill. */
const CHUNKS_PER_HEADER = 20;

export class RecordingFile {
  readonly filePath: string;
  readonly #onFailed: (detail: string) => void;
  readonly #waiting: Int16Array[] = [];
  #bytesWaiting = 0;
  #writer: WavFileWriter | null = null;
  #opening: Promise<void> | null = null;
  #draining: Promise<void> | null = null;
  #hasFailed = false;
  #chunksSinceHeader = 0;

  constructor(options: RecordingFileOptions) {
    this.filePath = options.filePath;
    this.#onFailed = options.onFailed;
  }

  /** @throws the file system's error, after `onFailed`. */
  open(): Promise<void> {
    this.#opening = this.#open();
    return this.#opening;
  }

  async #open(): Promise<void> {
    try {
      this.#writer = await WavFileWriter.open(this.filePath, { channels: 2, sampleRateHz: 8000 });
    } catch (error) {
      this.#fail(error);
      throw error;
    }
    this.#startDraining();
  }

  /** Queues interleaved samples; the array now belongs to the file. */
  write(samples: Int16Array): void {
    if (this.#hasFailed) return;
    if (this.#bytesWaiting + samples.byteLength > MOST_BYTES_WAITING) {
      this.#fail(new Error('the disk is too slow'));
      return;
    }
    this.#waiting.push(samples);
    this.#bytesWaiting += samples.byteLength;
    this.#startDraining();
  }

  /** Writes what waits, puts the header right and closes. The bytes of audio in the file; null when it failed. */
  async finish(): Promise<number | null> {
    await this.#opening?.catch(() => {});
    for (this.#startDraining(); this.#draining !== null; this.#startDraining()) await this.#draining;
    const writer = this.#writer;
    this.#writer = null;
    if (writer === null) return null;
    try {
      await writer.finish();
    } catch (error) {
      this.#fail(error);
    }
    return this.#hasFailed ? null : writer.dataBytes;
  }

  #startDraining(): void {
    if (this.#writer === null || this.#draining !== null || this.#waiting.length === 0) return;
    this.#draining = this.#drain(this.#writer).finally(() => {
      this.#draining = null;
    });
  }

  async #drain(writer: WavFileWriter): Promise<void> {
    try {
      for (let samples = this.#waiting.shift(); samples !== undefined; samples = this.#waiting.shift()) {
        this.#bytesWaiting -= samples.byteLength;
        await writer.append(littleEndianBytes(samples));
        this.#chunksSinceHeader += 1;
        if (this.#chunksSinceHeader < CHUNKS_PER_HEADER) continue;
        this.#chunksSinceHeader = 0;
        await writer.rewriteHeader();
      }
    } catch (error) {
      this.#fail(error);
    }
  }

  #fail(error: unknown): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#waiting.length = 0;
    this.#bytesWaiting = 0;
    this.#onFailed(describe(error));
  }
}

/** The samples as a WAV file and `linear16` have them; the array's own memory. */
export function littleEndianBytes(samples: Int16Array): Buffer {
  const bytes = Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength);
  return endianness() === 'LE' ? bytes : bytes.swap16();
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return 'the file could not be written';
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message;
}
