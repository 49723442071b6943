/** Passes samples from one thread to another through shared memory, without messages. The reader polls. */

/** Eight seconds, rounded to powers of two. */
const CAPACITIES = { 8000: 65_536, 16000: 131_072 } as const;
type SampleRateHz = keyof typeof CAPACITIES;
const HEADER_BYTES = 8;
/** Samples written and read since the start, modulo 2^32. */
const WRITTEN = 0;
const READ = 1;

export class SampleRing {
  readonly memory: SharedArrayBuffer;
  readonly sampleRateHz: SampleRateHz;
  readonly #capacity: number;
  readonly #mask: number;
  readonly #counts: Int32Array;
  readonly #samples: Int16Array;

  /**
   * @param source the sample rate of a new ring, or the memory of an existing one. @throws RangeError for other memory
   */
  constructor(source: SampleRateHz | SharedArrayBuffer) {
    this.memory = typeof source === 'number' ? new SharedArrayBuffer(bytesOf(source)) : source;
    this.sampleRateHz = rateOf(this.memory);
    this.#capacity = CAPACITIES[this.sampleRateHz];
    this.#mask = this.#capacity - 1;
    this.#counts = new Int32Array(this.memory, 0, 2);
    this.#samples = new Int16Array(this.memory, HEADER_BYTES, this.#capacity);
  }

  get waiting(): number {
    return (Atomics.load(this.#counts, WRITTEN) - Atomics.load(this.#counts, READ)) | 0;
  }

  /** Writes all samples, or none if they do not fit. */
  write(samples: Int16Array): boolean {
    if (this.waiting + samples.length > this.#capacity) return false;
    const written = this.#counts[WRITTEN]!;
    const at = written & this.#mask;
    const upToEnd = Math.min(samples.length, this.#capacity - at);
    this.#samples.set(upToEnd === samples.length ? samples : samples.subarray(0, upToEnd), at);
    if (upToEnd < samples.length) this.#samples.set(samples.subarray(upToEnd), 0);
    Atomics.store(this.#counts, WRITTEN, (written + samples.length) | 0);
    return true;
  }

  /** Moves the oldest samples into `target`. Returns their number. */
  read(target: Int16Array): number {
    const count = Math.min(target.length, this.waiting);
    const read = this.#counts[READ]!;
    const at = read & this.#mask;
    const upToEnd = Math.min(count, this.#capacity - at);
    target.set(this.#samples.subarray(at, at + upToEnd));
    if (upToEnd < count) target.set(this.#samples.subarray(0, count - upToEnd), upToEnd);
    Atomics.store(this.#counts, READ, (read + count) | 0);
    return count;
  }
}

function bytesOf(sampleRateHz: SampleRateHz): number {
  return HEADER_BYTES + 2 * CAPACITIES[sampleRateHz];
}

/** The memory size identifies the rate. */
function rateOf({ byteLength }: SharedArrayBuffer): SampleRateHz {
  if (byteLength === bytesOf(8000)) return 8000;
  if (byteLength === bytesOf(16_000)) return 16_000;
  throw new RangeError('this is not the memory of a ring');
}
