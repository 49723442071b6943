/** A stretch of a clause with sound. */
export interface Sound {
  startMs: number;
  endMs: number;
}

/** Fine enough for the onsets of words. */
const FRAME_MS = 5;
/** Relative to the loudest frame: engine noise and room decay are quieter, weak consonants louder. */
const SILENCE_BELOW_DB = 40;
/** In steps of 16-bit samples: below it the whole clause is silent. */
const LEAST_POWER = 16;
/** Shorter silences belong to the sound. */
const LEAST_GAP_FRAMES = 4;

/** Detects sound in samples that arrive in blocks. */
export class SoundDetector {
  readonly #samplesPerFrame: number;
  readonly #powers: number[] = [];
  #samples = 0;
  #sum = 0;
  #frameEnd: number;

  constructor(sampleRateHz: number) {
    this.#samplesPerFrame = (sampleRateHz * FRAME_MS) / 1000;
    this.#frameEnd = this.#samplesPerFrame;
  }

  add(samples: Int16Array): void {
    for (let index = 0; index < samples.length; index++) {
      this.#sum += samples[index]! * samples[index]!;
      this.#samples += 1;
      if (this.#samples < this.#frameEnd) continue;
      this.#powers.push(this.#sum / this.#samplesPerFrame);
      this.#frameEnd += this.#samplesPerFrame;
      this.#sum = 0;
    }
  }

  /** In order, without overlap; covers the complete frames so far. */
  sounds(): Sound[] {
    let loudest = 0;
    for (const power of this.#powers) if (power > loudest) loudest = power;
    const threshold = Math.max(LEAST_POWER, loudest * 10 ** (-SILENCE_BELOW_DB / 10));
    const sounds: Sound[] = [];
    let last = Number.NEGATIVE_INFINITY;
    for (const [frame, power] of this.#powers.entries()) {
      if (power < threshold) continue;
      if (frame - last > LEAST_GAP_FRAMES) sounds.push({ startMs: frame * FRAME_MS, endMs: 0 });
      sounds.at(-1)!.endMs = (frame + 1) * FRAME_MS;
      last = frame;
    }
    return sounds;
  }
}
