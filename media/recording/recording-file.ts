import { endianness } from 'node:os';
import type { Clock } from '../../runtime/clock.ts';
import { LATE, within } from '../../runtime/waiting.ts';

/**
 * Queues the chunks of a recording without blocking the caller, and writes them one by one. If the limited queue is
 * full, or on a disk error, the recording fails once and drops later chunks. The file is then closed as it is:
 * `repairRecording` makes it playable.
 */

/** A growing file. Wait for each promise before the next call. */
export interface AudioFileWriter {
  readonly dataBytes: number;
  append(chunk: Uint8Array): Promise<void>;
  rewriteHeader(): Promise<void>;
  finish(): Promise<void>;
  /** Closes it without another write. */
  abandon(): Promise<void>;
}

interface RecordingFileOptions {
  openFile: () => Promise<AudioFileWriter>;
  /** Called at most once, with text for the log: the file system's error code, without the path. */
  onFailed: (detail: string) => void;
  /** Returns the array of a chunk that was written. */
  onWritten?: (samples: Int16Array) => void;
  clock?: Pick<Clock, 'setTimeout' | 'clearTimeout'>;
}

/** Half a minute of queued audio, a quarter at 16 kHz. */
const MOST_BYTES_WAITING = 1_000_000;
/** Chunks between two rewrites of the header, about five seconds: limits the repair after a kill. */
const CHUNKS_PER_HEADER = 10;
/** Longest wait for the disk at the end of a call. */
const FINISH_WITHIN_MS = 5_000;
const TOO_SLOW = 'the disk is too slow';

export class RecordingFile {
  readonly #options: RecordingFileOptions;
  readonly #waiting: Int16Array[] = [];
  #bytesWaiting = 0;
  #writer: AudioFileWriter | null = null;
  #opening: Promise<void> | null = null;
  #draining: Promise<void> | null = null;
  #hasFailed = false;
  #chunksSinceHeader = 0;

  constructor(options: RecordingFileOptions) {
    this.#options = options;
  }

  /** @throws the file system's error, after `onFailed`. */
  open(): Promise<void> {
    this.#opening = this.#open();
    return this.#opening;
  }

  async #open(): Promise<void> {
    try {
      this.#writer = await this.#options.openFile();
    } catch (error) {
      this.#fail(error);
      throw error;
    }
    this.#startDraining();
  }

  /** Queues interleaved samples. Takes ownership of the array until `onWritten`. */
  write(samples: Int16Array): void {
    if (this.#hasFailed) return;
    if (this.#bytesWaiting + samples.byteLength > MOST_BYTES_WAITING) {
      this.#fail(new Error(TOO_SLOW));
      return;
    }
    this.#waiting.push(samples);
    this.#bytesWaiting += samples.byteLength;
    this.#startDraining();
  }

  /**
   * Writes the queue, completes the header and closes the file. Returns the bytes of audio; null if it failed. A disk
   * that hangs for five seconds fails the recording.
   */
  async finish(): Promise<number | null> {
    const dataBytes = await within(this.#finish(), { ms: FINISH_WITHIN_MS, clock: this.#options.clock });
    if (dataBytes !== LATE) return dataBytes;
    this.#fail(new Error(TOO_SLOW));
    return null;
  }

  async #finish(): Promise<number | null> {
    await this.#opening?.catch(() => {});
    for (this.#startDraining(); this.#draining !== null; this.#startDraining()) await this.#draining;
    const writer = this.#writer;
    this.#writer = null;
    if (writer === null) return null;
    try {
      await (this.#hasFailed ? writer.abandon() : writer.finish());
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

  async #drain(writer: AudioFileWriter): Promise<void> {
    try {
      for (let samples = this.#waiting.shift(); samples !== undefined; samples = this.#waiting.shift()) {
        this.#bytesWaiting -= samples.byteLength;
        await writer.append(littleEndianBytes(samples));
        this.#options.onWritten?.(samples);
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
    this.#options.onFailed(describe(error));
  }
}

/** The samples as little-endian bytes, in the same memory. */
export function littleEndianBytes(samples: Int16Array): Buffer {
  const bytes = Buffer.from(samples.buffer, samples.byteOffset, samples.byteLength);
  return endianness() === 'LE' ? bytes : bytes.swap16();
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return 'the file could not be written';
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message;
}
