import type { SystemCalls } from './system-calls.ts';

const PAGE_BYTES = 4096;

/** Memory at a fixed address, shared with the kernel. */
export class NativeMemory {
  readonly bytes: Buffer;
  readonly words: Int32Array;
  /** Both halves of the start address. Offsets change only the lower one. */
  readonly addressLow: number;
  readonly addressHigh: number;

  /** Zeroed and page-aligned. */
  constructor(calls: SystemCalls, bytes: number) {
    // Twice the size, so that it can start at a page and not cross a multiple of 4 GiB.
    const memory = new ArrayBuffer(2 * bytes + 2 * PAGE_BYTES);
    const base = calls.addressOf(memory);
    let start = Math.ceil(base / PAGE_BYTES) * PAGE_BYTES;
    const boundary = Math.ceil(start / 2 ** 32) * 2 ** 32;
    if (start < boundary && start + bytes > boundary) start = boundary;
    this.bytes = Buffer.from(memory, start - base, bytes);
    this.words = new Int32Array(memory, start - base, bytes / 4);
    this.addressLow = start | 0;
    this.addressHigh = Math.floor(start / 2 ** 32);
  }

  get address(): number {
    return this.addressHigh * 2 ** 32 + (this.addressLow >>> 0);
  }

  /** Writes the address of byte `offset` as a pointer to words `at` and `at` + 1 of `other`. */
  pointFrom(other: NativeMemory, at: number, offset: number): void {
    other.words[at] = (this.addressLow + offset) | 0;
    other.words[at + 1] = this.addressHigh;
  }
}
