import type { SystemCalls } from './system-calls.ts';

const PAGE_BYTES = 4096;

/** Memory that the kernel reads or writes, at an address that never changes. */
export class NativeMemory {
  readonly bytes: Buffer;
  readonly words: Int32Array;
  /** Both halves of the address of the first byte. Offsets change the lower one only. */
  readonly addressLow: number;
  readonly addressHigh: number;

  /** Zeroed, and aligned to a page. */
  constructor(calls: SystemCalls, bytes: number) {
    // Twice as much, so that there is room to begin at a page and not to cross a multiple of 4 GiB.
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

  /** Of the first byte. */
  get address(): number {
    return this.addressHigh * 2 ** 32 + (this.addressLow >>> 0);
  }

  /** Writes the address of our byte `offset` to a pointer: word `at` of `other` and the one behind it. */
  pointFrom(other: NativeMemory, at: number, offset: number): void {
    other.words[at] = (this.addressLow + offset) | 0;
    other.words[at + 1] = this.addressHigh;
  }
}
