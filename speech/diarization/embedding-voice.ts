import type { Voice } from './voice.ts';

/**
 * The mean embedding of stretches of speech by a speaker model. Compared by angle, for which such models are trained.
 */
export class EmbeddingVoice implements Voice<EmbeddingVoice> {
  readonly frames: number;
  /** Sum of the directions, weighted by frames. */
  readonly #direction: Float64Array;

  private constructor(frames: number, direction: Float64Array) {
    this.frames = frames;
    this.#direction = direction;
  }

  /** Null if the embedding is not finite or has no direction. */
  static of(embedding: Float32Array, frames: number): EmbeddingVoice | null {
    const length = Math.hypot(...embedding);
    if (!Number.isFinite(length) || length === 0) return null;
    return new EmbeddingVoice(
      frames,
      Float64Array.from(embedding, (value) => (value / length) * frames),
    );
  }

  distanceTo(other: EmbeddingVoice): number {
    let product = 0;
    for (let index = 0; index < this.#direction.length; index++) {
      product += this.#direction[index]! * (other.#direction[index] ?? 0);
    }
    const cosine = product / (Math.hypot(...this.#direction) * Math.hypot(...other.#direction) || 1);
    return (1 - cosine) / (1 - ONE_VOICE_COSINE);
  }

  joinedWith(other: EmbeddingVoice): EmbeddingVoice {
    return new EmbeddingVoice(
      this.frames + other.frames,
      this.#direction.map((value, index) => value + (other.#direction[index] ?? 0)),
    );
  }
}

/** Speaker models place two stretches of one voice closer than this, and most other pairs further. */
const ONE_VOICE_COSINE = 0.6;
