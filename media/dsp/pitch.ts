import { Resampler } from './resample.ts';

/** Fundamental frequency over time. The first frame is centred on the first sample; 0 is unvoiced. */
export interface PitchTrack {
  hz: Float32Array<ArrayBuffer>;
  stepMs: number;
}

export const PITCH_STEP_MS = 10;

/** Tracks the fundamental frequency of a whole recording, 50 to 500 Hz, at any sample scale. */
export function trackPitch(samples: Float32Array, sampleRateHz: number): PitchTrack {
  let peak = 0;
  for (let i = 0; i < samples.length; i++) peak = Math.max(peak, Math.abs(samples[i]!));
  const tracker = new PitchTracker(sampleRateHz, { usualPeak: peak });
  const hz = new Float32Array(tracker.framesBound(samples.length));
  let frames = tracker.process(samples, samples.length, hz);
  frames += tracker.flush(hz.subarray(frames));
  return { hz: hz.slice(0, frames), stepMs: PITCH_STEP_MS };
}

/**
 * Tracks the fundamental frequency of a stream, independent of block sizes. Candidates are peaks of the normalised
 * cross-correlation (Talkin, "A Robust Algorithm for Pitch Tracking", 1995). The cheapest path through them is found as
 * by Boersma, "Accurate short-term analysis of the fundamental frequency", 1993, but decided after `DECISION_FRAMES`.
 */
export class PitchTracker {
  readonly #resampler: Resampler | null;
  #resampled = new Float32Array(0);
  /** At `RATE_HZ`, from the start of the next frame's window. */
  #history = new Float32Array(4 * SPAN);
  #filled = SPAN / 2;
  /** Input samples at `RATE_HZ`, analysed frames and returned frames. */
  #samples = 0;
  #analysed = 0;
  #decided = 0;
  #peak: number;
  readonly #window = new Float32Array(SPAN);
  readonly #energyBefore = new Float64Array(SPAN + 1);
  readonly #likeness = new Float64Array(LONGEST_LAG + 2);
  /** By frame of the ring and candidate. The first candidate is "unvoiced". */
  readonly #hz = new Float64Array(RING_FRAMES * CANDIDATES);
  readonly #score = new Float64Array(RING_FRAMES * CANDIDATES);
  readonly #origin = new Uint8Array(RING_FRAMES * CANDIDATES);
  readonly #count = new Uint8Array(RING_FRAMES);

  /**
   * @param usualPeak of loud speech, if known; much quieter sound counts as silence
   * @throws RangeError unless rates are positive integers
   */
  constructor(sampleRateHz: number, { usualPeak = 0 } = {}) {
    this.#peak = usualPeak;
    this.#resampler = sampleRateHz === RATE_HZ ? null : new Resampler(sampleRateHz, RATE_HZ);
  }

  /** Upper bound of the frames from this number of samples and the input so far. */
  framesBound(samples: number): number {
    const resampled = this.#resampler === null ? samples : this.#resampler.outputBound(samples);
    return Math.ceil((resampled + SPAN) / STEP) + RING_FRAMES;
  }

  /** Adds the first `count` samples and writes the decided frames. Returns their number. */
  process(samples: Float32Array, count: number, hz: Float32Array): number {
    if (this.#resampler === null) return this.#take(samples, count, hz);
    const bound = this.#resampler.outputBound(count);
    if (this.#resampled.length < bound) this.#resampled = new Float32Array(bound);
    return this.#take(this.#resampled, this.#resampler.process(samples, count, this.#resampled), hz);
  }

  /** Writes the remaining frames. Ends the stream. */
  flush(hz: Float32Array): number {
    let written = 0;
    if (this.#resampler !== null) {
      const rest = new Float32Array(this.#resampler.outputBound(0));
      written = this.#take(rest, this.#resampler.flush(rest), hz);
    }
    const frames = Math.ceil(this.#samples / STEP);
    written += this.#take(new Float32Array(SPAN), SPAN, hz.subarray(written), frames);
    return written + this.#decide(hz.subarray(written), frames - this.#decided);
  }

  #take(samples: Float32Array, count: number, hz: Float32Array, mostFrames = Number.POSITIVE_INFINITY): number {
    this.#samples += count;
    let written = 0;
    for (let taken = 0; taken < count; ) {
      const part = Math.min(count - taken, this.#history.length - this.#filled);
      for (let i = 0; i < part; i++) this.#history[this.#filled + i] = samples[taken + i]!;
      this.#filled += part;
      taken += part;
      let from = 0;
      for (; from + SPAN <= this.#filled && this.#analysed < mostFrames; from += STEP) {
        this.#analyse(from);
        if (this.#analysed - this.#decided === RING_FRAMES) written += this.#decide(hz.subarray(written), 1);
      }
      if (this.#analysed >= mostFrames) return written;
      this.#history.copyWithin(0, from, this.#filled);
      this.#filled -= from;
    }
    return written;
  }

  #analyse(from: number): void {
    const peak = this.#cutOut(from);
    this.#peak = Math.max(peak, this.#peak * PEAK_DECAY);
    const frame = (this.#analysed % RING_FRAMES) * CANDIDATES;
    const level = this.#peak === 0 ? 0 : peak / this.#peak;
    this.#hz[frame] = 0;
    this.#score[frame] = VOICING_THRESHOLD + Math.max(0, 2 - level / (SILENCE_THRESHOLD / (1 + VOICING_THRESHOLD)));
    let count = 1;
    if (peak > 0) {
      this.#compare();
      count = this.#choose(frame);
    }
    this.#count[this.#analysed % RING_FRAMES] = count;
    this.#connect(frame, count);
    this.#analysed += 1;
  }

  /** Copies the window without its mean, with cumulative energies. Returns the peak. */
  #cutOut(from: number): number {
    let mean = 0;
    for (let i = 0; i < SPAN; i++) mean += this.#history[from + i]!;
    mean /= SPAN;
    let peak = 0;
    let energy = 0;
    for (let i = 0; i < SPAN; i++) {
      const sample = this.#history[from + i]! - mean;
      this.#window[i] = sample;
      energy += sample * sample;
      this.#energyBefore[i + 1] = energy;
      peak = Math.max(peak, Math.abs(sample));
    }
    return peak;
  }

  /** Correlates two stretches at each lag, around the middle of the window. */
  #compare(): void {
    const window = this.#window;
    const energyBefore = this.#energyBefore;
    for (let lag = SHORTEST_LAG - 1; lag <= LONGEST_LAG + 1; lag++) {
      const a = (SPAN - STRETCH - lag) >> 1;
      const b = a + lag;
      // Four sums avoid a dependency between additions.
      let sum0 = 0;
      let sum1 = 0;
      let sum2 = 0;
      let sum3 = 0;
      for (let i = 0; i < STRETCH; i += 4) {
        sum0 += window[a + i]! * window[b + i]!;
        sum1 += window[a + i + 1]! * window[b + i + 1]!;
        sum2 += window[a + i + 2]! * window[b + i + 2]!;
        sum3 += window[a + i + 3]! * window[b + i + 3]!;
      }
      const product = sum0 + sum1 + sum2 + sum3;
      const energyOfA = energyBefore[a + STRETCH]! - energyBefore[a]!;
      const energyOfB = energyBefore[b + STRETCH]! - energyBefore[b]!;
      this.#likeness[lag] = product / (Math.sqrt(energyOfA * energyOfB) + Number.MIN_VALUE);
    }
  }

  /** Keeps the best peaks as candidates. Returns their number, including "unvoiced". */
  #choose(frame: number): number {
    const likeness = this.#likeness;
    let count = 1;
    for (let lag = SHORTEST_LAG; lag <= LONGEST_LAG; lag++) {
      const before = likeness[lag - 1]!;
      const here = likeness[lag]!;
      const after = likeness[lag + 1]!;
      if (here < LEAST_LIKENESS || here < before || here <= after) continue;
      // The top of a parabola through the three values.
      const bend = before - 2 * here + after;
      const shift = bend === 0 ? 0 : (before - after) / (2 * bend);
      const period = lag + shift;
      const top = here - ((before - after) * shift) / 4;
      const score = this.#lasting(top, period) - OCTAVE_COST * Math.log2(period);
      let slot = count;
      if (count < CANDIDATES) count += 1;
      else {
        slot = 1;
        for (let other = 2; other < CANDIDATES; other++) {
          if (this.#score[frame + other]! < this.#score[frame + slot]!) slot = other;
        }
        if (this.#score[frame + slot]! >= score) continue;
      }
      this.#hz[frame + slot] = RATE_HZ / period;
      this.#score[frame + slot] = score;
    }
    // Normalises the cost to 0 at the highest pitch.
    for (let slot = 1; slot < count; slot++) this.#score[frame + slot]! += OCTAVE_COST * Math.log2(SHORTEST_LAG);
    return count;
  }

  /**
   * Averages the correlations over one period and over 10 ms. Fricatives and bursts that ring at a low formant resemble
   * a high voice, but only for a period or two.
   */
  #lasting(likeness: number, period: number): number {
    const periods = Math.floor(LASTING_LAG / period);
    if (periods < 2) return likeness;
    const lag = Math.round(periods * period);
    const later = Math.max(this.#likeness[lag - 1]!, this.#likeness[lag]!, this.#likeness[lag + 1]!);
    return (likeness + Math.min(likeness, later)) / 2;
  }

  /** Adds the score of the best path to each candidate. */
  #connect(frame: number, count: number): void {
    if (this.#analysed === 0) return;
    const previous = (this.#analysed - 1) % RING_FRAMES;
    const past = previous * CANDIDATES;
    let most = Number.NEGATIVE_INFINITY;
    for (let slot = 0; slot < count; slot++) {
      let best = Number.NEGATIVE_INFINITY;
      for (let other = 0; other < this.#count[previous]!; other++) {
        const score = this.#score[past + other]! - jumpCost(this.#hz[past + other]!, this.#hz[frame + slot]!);
        if (score <= best) continue;
        best = score;
        this.#origin[frame + slot] = other;
      }
      this.#score[frame + slot]! += best;
      most = Math.max(most, this.#score[frame + slot]!);
    }
    // Only differences matter, and growing sums would lose precision.
    for (let slot = 0; slot < count; slot++) this.#score[frame + slot]! -= most;
  }

  /** Writes the oldest frames of the best path to the newest. */
  #decide(hz: Float32Array, frames: number): number {
    if (frames === 0) return 0;
    const newest = this.#analysed - 1;
    let slot = 0;
    const last = (newest % RING_FRAMES) * CANDIDATES;
    for (let other = 1; other < this.#count[newest % RING_FRAMES]!; other++) {
      if (this.#score[last + other]! > this.#score[last + slot]!) slot = other;
    }
    for (let frame = newest; frame >= this.#decided; frame--) {
      const at = (frame % RING_FRAMES) * CANDIDATES + slot;
      if (frame < this.#decided + frames) hz[frame - this.#decided] = this.#hz[at]!;
      slot = this.#origin[at]!;
    }
    this.#decided += frames;
    return frames;
  }
}

/** Enough for pitch, and telephone audio has no more. */
const RATE_HZ = 8000;
const STEP = (PITCH_STEP_MS * RATE_HZ) / 1000;
/** 500 to 50 Hz. */
const SHORTEST_LAG = 16;
const LONGEST_LAG = 160;
/** 24 ms: longer than a period of the lowest voices. */
const STRETCH = 192;
/** Samples of a frame: 44 ms, and one on either side of the longest lag. */
const SPAN = STRETCH + LONGEST_LAG + 2;
const LASTING_LAG = 80;
const CANDIDATES = 8;
/** A frame is decided after this number of later frames. */
const DECISION_FRAMES = 10;
const RING_FRAMES = DECISION_FRAMES + 1;
const LEAST_LIKENESS = 0.3;

/**
 * Costs after Boersma, for steps of 10 ms. The octave cost is higher, because all multiples of a period correlate
 * equally.
 */
const VOICING_THRESHOLD = 0.5;
const SILENCE_THRESHOLD = 0.03;
const OCTAVE_COST = 0.03;
const OCTAVE_JUMP_COST = 0.35;
const VOICING_CHANGE_COST = 0.14;
/** Decay of the peak level: half in 7 s. */
const PEAK_DECAY = 0.999;

function jumpCost(fromHz: number, toHz: number): number {
  if (fromHz === 0 && toHz === 0) return 0;
  if (fromHz === 0 || toHz === 0) return VOICING_CHANGE_COST;
  return OCTAVE_JUMP_COST * Math.abs(Math.log2(fromHz / toHz));
}
