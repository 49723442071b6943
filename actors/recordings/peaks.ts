/**
 * Peaks of a recording for waveform displays, as audiowaveform JSON version 2. Each point has the minimum and maximum
 * sample per channel, in 8 bits (-128 to 127), 100 points a second.
 */

const PEAKS_PER_SECOND = 100;

/** Writes the file in pieces, from interleaved samples in blocks of any size. */
export class PeaksWriter {
  readonly #channels: number;
  readonly #sampleRateHz: number;
  readonly #samplesPerPoint: number;
  readonly #lows: Int16Array;
  readonly #highs: Int16Array;
  readonly #frames: number;
  #filled = 0;
  #points = 0;

  /** @param frames expected samples per channel */
  constructor({ channels, sampleRateHz, frames }: { channels: number; sampleRateHz: number; frames: number }) {
    this.#channels = channels;
    this.#samplesPerPoint = Math.round(sampleRateHz / PEAKS_PER_SECOND);
    this.#frames = frames;
    this.#lows = new Int16Array(channels);
    this.#highs = new Int16Array(channels);
    this.#sampleRateHz = sampleRateHz;
    this.#clear();
  }

  begin(): string {
    const head = {
      version: 2,
      channels: this.#channels,
      sample_rate: this.#sampleRateHz,
      samples_per_pixel: this.#samplesPerPoint,
      bits: 8,
      length: Math.ceil(this.#frames / this.#samplesPerPoint),
    };
    return `${JSON.stringify(head).slice(0, -1)},"data":[`;
  }

  add(samples: Int16Array): string {
    const channels = this.#channels;
    let text = '';
    for (let at = 0; at + channels <= samples.length; at += channels) {
      for (let channel = 0; channel < channels; channel++) {
        const sample = samples[at + channel]!;
        if (sample < this.#lows[channel]!) this.#lows[channel] = sample;
        if (sample > this.#highs[channel]!) this.#highs[channel] = sample;
      }
      this.#filled += 1;
      if (this.#filled === this.#samplesPerPoint) text += this.#point();
    }
    return text;
  }

  end(): string {
    return `${this.#filled > 0 ? this.#point() : ''}]}`;
  }

  #point(): string {
    let text = '';
    for (let channel = 0; channel < this.#channels; channel++) {
      const comma = this.#points === 0 && channel === 0 ? '' : ',';
      text += `${comma}${this.#lows[channel]! >> 8},${this.#highs[channel]! >> 8}`;
    }
    this.#points += 1;
    this.#clear();
    return text;
  }

  #clear(): void {
    this.#filled = 0;
    this.#lows.fill(32_767);
    this.#highs.fill(-32_768);
  }
}
