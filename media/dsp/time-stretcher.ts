/**
 * Slows speech down without changing its pitch. Overlaps input frames at a fixed distance, each from the best
 * continuation of the previous one (WSOLA: Verhelst and Roelands, "An overlap-add technique based on waveform
 * similarity (WSOLA) for high quality time-scale modification of speech", ICASSP 1993).
 */
export class TimeStretcher {
  readonly #frame: number;
  readonly #hop: number;
  readonly #tolerance: number;
  readonly #analysisHop: number;
  readonly #window: Float32Array;
  /** Input that is still needed; index 0 is sample `#start`. */
  #input = new Float32Array(0);
  #start = 0;
  /** Position of the last frame; -1 before the first. */
  #taken = -1;
  #frames = 0;
  /** The second half of the last frame, windowed. */
  #tail: Float32Array;

  /** @param factor duration of the output relative to the input, 1 to 4 */
  constructor(sampleRateHz: number, factor: number) {
    this.#hop = Math.round((sampleRateHz * HOP_MS) / 1000);
    this.#frame = 2 * this.#hop;
    this.#tolerance = Math.round((sampleRateHz * TOLERANCE_MS) / 1000);
    this.#analysisHop = this.#hop / factor;
    this.#window = Float32Array.from(
      { length: this.#frame },
      (_, i) => 0.5 - 0.5 * Math.cos((Math.PI * i) / this.#hop),
    );
    this.#tail = new Float32Array(this.#hop);
  }

  /** Adds samples and returns the completed ones. */
  push(samples: Int16Array): Int16Array {
    const input = new Float32Array(this.#input.length + samples.length);
    input.set(this.#input);
    input.set(samples, this.#input.length);
    this.#input = input;
    return this.#drain(this.#start + input.length);
  }

  /** Returns the rest. Ends the stream. */
  end(): Int16Array {
    const length = this.#start + this.#input.length;
    const rest = this.push(new Int16Array(this.#frame + 2 * this.#tolerance));
    const surplus = this.#frames * this.#hop - Math.round((length * this.#hop) / this.#analysisHop);
    return surplus > 0 ? rest.subarray(0, Math.max(0, rest.length - surplus)) : rest;
  }

  #drain(available: number): Int16Array {
    const out: Int16Array[] = [];
    for (;;) {
      const nominal = Math.round(this.#frames * this.#analysisHop);
      if (nominal + this.#tolerance + this.#frame > available) break;
      const at = this.#taken < 0 ? nominal : this.#bestNear(nominal);
      out.push(this.#layDown(at));
      this.#taken = at;
      this.#frames++;
    }
    this.#forget();
    return joined(out);
  }

  /** The position whose first half best matches the continuation of the last frame. */
  #bestNear(nominal: number): number {
    const natural = this.#taken + this.#hop - this.#start;
    let best = nominal;
    let highest = Number.NEGATIVE_INFINITY;
    for (let at = Math.max(this.#start, nominal - this.#tolerance); at <= nominal + this.#tolerance; at++) {
      const from = at - this.#start;
      let product = 0;
      let energy = 1;
      for (let i = 0; i < this.#hop; i += STRIDE) {
        const sample = this.#input[from + i]!;
        product += sample * this.#input[natural + i]!;
        energy += sample * sample;
      }
      const likeness = product / Math.sqrt(energy);
      if (likeness <= highest) continue;
      highest = likeness;
      best = at;
    }
    return best;
  }

  #layDown(at: number): Int16Array {
    const from = at - this.#start;
    const half = new Int16Array(this.#hop);
    const isFirst = this.#taken < 0;
    for (let i = 0; i < this.#hop; i++) {
      // The first frame has no predecessor to fade from.
      const weight = isFirst ? 1 : this.#window[i]!;
      half[i] = Math.max(-32_768, Math.min(32_767, Math.round(this.#input[from + i]! * weight + this.#tail[i]!)));
    }
    this.#tail = Float32Array.from(
      { length: this.#hop },
      (_, i) => this.#input[from + this.#hop + i]! * this.#window[this.#hop + i]!,
    );
    return half;
  }

  /** Keeps the input for the next frame and the continuation of the last one. */
  #forget(): void {
    const next = Math.round(this.#frames * this.#analysisHop) - this.#tolerance;
    const keepFrom = Math.max(this.#start, Math.min(next, this.#taken < 0 ? 0 : this.#taken + this.#hop));
    this.#input = this.#input.slice(keepFrom - this.#start);
    this.#start = keepFrom;
  }
}

const HOP_MS = 12;
/** A period of the lowest voices, so that pulses align. */
const TOLERANCE_MS = 8;
const STRIDE = 2;

function joined(parts: readonly Int16Array[]): Int16Array {
  const whole = new Int16Array(parts.reduce((sum, { length }) => sum + length, 0));
  parts.reduce((at, part) => {
    whole.set(part, at);
    return at + part.length;
  }, 0);
  return whole;
}
