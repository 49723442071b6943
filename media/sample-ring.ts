/**
 * Passes samples from one thread to another through shared memory, without messages. The reader polls.
 */

/** A power of two: 8 seconds at 8 kHz. */
const CAPACITY = 65_536;
const MASK = CAPACITY - 1;
const HEADER_BYTES = 8;
/** Samples written and read since the start, modulo 2^32. */
const WRITTEN = 0;
const READ = 1;

export class SampleRing {
  readonly memory: SharedArrayBuffer;
  readonly #counts: Int32Array;
  readonly #samples: Int16Array;

  /** @param memory of another `SampleRing`. Default: a new one. @throws RangeError for other memory */
  constructor(memory: SharedArrayBuffer = new SharedArrayBuffer(HEADER_BYTES + 2 * CAPACITY)) {
    if (memory.byteLength !== HEADER_BYTES + 2 * CAPACITY) throw new RangeError('this is not the memory of a ring');
    this.memory = memory;
    this.#counts = new Int32Array(memory, 0, 2);
    this.#samples = new Int16Array(memory, HEADER_BYTES, CAPACITY);
  }

  /** Written and not yet read. */
  get waiting(): number {
    return (Atomics.load(this.#counts, WRITTEN) - Atomics.load(this.#counts, READ)) | 0;
  }

  /** Writes all of them, or nothing when they do not fit. */
  write(samples: Int16Array): boolean {
    if (this.waiting + samples.length > CAPACITY) return false;
    const written = this.#counts[WRITTEN]!;
    const at = written & MASK;
    const upToEnd = Math.min(samples.length, CAPACITY - at);
    this.#samples.set(upToEnd === samples.length ? samples : samples.subarray(0, upToEnd), at);
    if (upToEnd < samples.length) this.#samples.set(samples.subarray(upToEnd), 0);
    Atomics.store(this.#counts, WRITTEN, (written + samples.length) | 0);
    return true;
  }

  /** Moves the oldest into `target`, from its start. Returns how many there were. */
  read(target: Int16Array): number {
    const count = Math.min(target.length, this.waiting);
    const read = this.#counts[READ]!;
    const at = read & MASK;
    const upToEnd = Math.min(count, CAPACITY - at);
    target.set(this.#samples.subarray(at, at + upToEnd));
    if (upToEnd < count) target.set(this.#samples.subarray(0, count - upToEnd), upToEnd);
    Atomics.store(this.#counts, READ, (read + count) | 0);
    return count;
  }
}
