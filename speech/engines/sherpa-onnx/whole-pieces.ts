/**
 * Buffers audio and cuts it into pieces for whole-utterance models, which are trained on at most half a minute and
 * forget or invent words in longer audio.
 */
export class WholePieces {
  readonly #mostSamples: number;
  #samples: Float32Array<ArrayBuffer>;
  #length = 0;

  constructor(mostSamples: number) {
    this.#mostSamples = mostSamples;
    this.#samples = new Float32Array(mostSamples);
  }

  /** Yields full pieces, cut at the quietest point in their last third; keeps the rest. */
  *add(samples: Float32Array): Generator<Float32Array<ArrayBuffer>> {
    for (let offset = 0; offset < samples.length; ) {
      const taken = samples.subarray(offset, offset + this.#mostSamples - this.#length);
      this.#samples.set(taken, this.#length);
      this.#length += taken.length;
      offset += taken.length;
      if (this.#length < this.#mostSamples) continue;
      const cut = quietestPlace(this.#samples, {
        from: Math.floor((this.#mostSamples * 2) / 3),
        to: this.#mostSamples,
      });
      yield this.#samples.slice(0, cut);
      this.#samples.copyWithin(0, cut);
      this.#length -= cut;
    }
  }

  /** Returns the rest; empty if there is none. */
  take(): Float32Array<ArrayBuffer> {
    const rest = this.#samples.slice(0, this.#length);
    this.#length = 0;
    return rest;
  }
}

/** 50 ms: longer than the gaps inside words. */
const WINDOW_SAMPLES = 800;

function quietestPlace(samples: Float32Array, { from, to }: { from: number; to: number }): number {
  let best = to;
  let bestPower = Number.POSITIVE_INFINITY;
  for (let start = from; start + WINDOW_SAMPLES <= to; start += WINDOW_SAMPLES) {
    let power = 0;
    for (let at = start; at < start + WINDOW_SAMPLES; at++) power += samples[at]! ** 2;
    if (power >= bestPower) continue;
    bestPower = power;
    best = start + WINDOW_SAMPLES / 2;
  }
  return best;
}
