import { Resampler } from './resample.ts';

/** A frame is the fundamental frequency around one moment, the first around the first sample; 0 when not voiced. */
export interface PitchTrack {
  hz: Float32Array<ArrayBuffer>;
  stepMs: number;
}

/** Milliseconds between frames. */
export const PITCH_STEP_MS = 10;

/** The fundamental frequency of a whole recording, 50 to 500 Hz, whatever the scale of the samples. */
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
 * Follows the fundamental frequency of speech as it comes. Each frame has candidates where speech resembles itself one
 * period later (the normalised cross-correlation of Talkin, "A Robust Algorithm for Pitch Tracking", 1995); the path
 * through them that costs least in jumps is found as by Boersma, "Accurate short-term analysis of the fundamental
 * frequency", 1993, but decided after `DECISION_FRAMES`. How the input is cut into blocks does not change the frames.
 */
export class PitchTracker {
  readonly #resampler: Resampler | null;
  #resampled = new Float32Array(0);
  /** At `RATE_HZ`, from where the next frame's window begins. */
  #history = new Float32Array(4 * SPAN);
  #filled = SPAN / 2;
  /** Samples that came, at `RATE_HZ`, and frames analysed and given out. */
  #samples = 0;
  #analysed = 0;
  #decided = 0;
  #peak: number;
  readonly #window = new Float32Array(SPAN);
  readonly #energyBefore = new Float64Array(SPAN + 1);
  readonly #likeness = new Float64Array(LONGEST_LAG + 2);
  /** Per frame of the ring and candidate; the first candidate is that there is no voice. */
  readonly #hz = new Float64Array(RING_FRAMES * CANDIDATES);
  readonly #score = new Float64Array(RING_FRAMES * CANDIDATES);
  readonly #origin = new Uint8Array(RING_FRAMES * CANDIDATES);
  readonly #count = new Uint8Array(RING_FRAMES);

  /**
   * @param usualPeak of the loud parts of the speech, as far as it is known: what is far below is taken for silence
   * @throws RangeError for rates that are no positive integers
   */
  constructor(sampleRateHz: number, { usualPeak = 0 } = {}) {
    this.#peak = usualPeak;
    this.#resampler = sampleRateHz === RATE_HZ ? null : new Resampler(sampleRateHz, RATE_HZ);
  }

  /** The most frames that so many samples, with what came before, can give. */
  framesBound(samples: number): number {
    const resampled = this.#resampler === null ? samples : this.#resampler.outputBound(samples);
    return Math.ceil((resampled + SPAN) / STEP) + RING_FRAMES;
  }

  /** Takes the first `count` of the samples and writes the frames decided by now; returns how many. */
  process(samples: Float32Array, count: number, hz: Float32Array): number {
    if (this.#resampler === null) return this.#take(samples, count, hz);
    const bound = this.#resampler.outputBound(count);
    if (this.#resampled.length < bound) this.#resampled = new Float32Array(bound);
    return this.#take(this.#resampled, this.#resampler.process(samples, count, this.#resampled), hz);
  }

  /** Writes the remaining frames, up to the end of what came. Nothing can follow. */
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
      // All frames that were asked for are there; what remains is silence.
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

  /** The window without its mean, and energies up to each sample. Returns the peak. */
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

  /** How much two stretches, a lag apart and around the middle of the window, are alike. */
  #compare(): void {
    const window = this.#window;
    const energyBefore = this.#energyBefore;
    for (let lag = SHORTEST_LAG - 1; lag <= LONGEST_LAG + 1; lag++) {
      const a = (SPAN - STRETCH - lag) >> 1;
      const b = a + lag;
      // Four sums, because each addition waits for the one before it.
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

  /** Keeps the best peaks as candidates; returns how many there are with that for no voice. */
  #choose(frame: number): number {
    const likeness = this.#likeness;
    let count = 1;
    for (let lag = SHORTEST_LAG; lag <= LONGEST_LAG; lag++) {
      const before = likeness[lag - 1]!;
      const here = likeness[lag]!;
      const after = likeness[lag + 1]!;
      if (here < LEAST_LIKENESS || here < before || here <= after) continue;
      // A parabola through the three has its top between them.
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
    // As if the highest pitch had no such cost.
    for (let slot = 1; slot < count; slot++) this.#score[frame + slot]! += OCTAVE_COST * Math.log2(SHORTEST_LAG);
    return count;
  }

  /**
   * The likeness of one period to the next and to one 10 ms away. Fricatives and bursts that ring at a low formant are
   * like a high voice for a period or two, and no longer.
   */
  #lasting(likeness: number, period: number): number {
    const periods = Math.floor(LASTING_LAG / period);
    if (periods < 2) return likeness;
    const lag = Math.round(periods * period);
    const later = Math.max(this.#likeness[lag - 1]!, this.#likeness[lag]!, this.#likeness[lag + 1]!);
    return (likeness + Math.min(likeness, later)) / 2;
  }

  /** Adds to each candidate's score that of the best path to it. */
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
    // Only differences matter; sums would lose their digits.
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

/** Enough for pitch, and a telephone has no more. */
const RATE_HZ = 8000;
const STEP = (PITCH_STEP_MS * RATE_HZ) / 1000;
/** 500 to 50 Hz. */
const SHORTEST_LAG = 16;
const LONGEST_LAG = 160;
/** 24 ms: more than a period of the lowest voices. */
const STRETCH = 192;
/** What a frame sees: 44 ms, and a sample on either side of the longest lag. */
const SPAN = STRETCH + LONGEST_LAG + 2;
const LASTING_LAG = 80;
const CANDIDATES = 8;
/** A frame is decided when so many after it are known. */
const DECISION_FRAMES = 10;
const RING_FRAMES = DECISION_FRAMES + 1;
const LEAST_LIKENESS = 0.3;

/** Costs after Boersma, for steps of 10 ms; the octave's is higher because all multiples of a period are as much alike. */
const VOICING_THRESHOLD = 0.5;
const SILENCE_THRESHOLD = 0.03;
const OCTAVE_COST = 0.03;
const OCTAVE_JUMP_COST = 0.35;
const VOICING_CHANGE_COST = 0.14;
/** Of the level that counts as loud: by half in 7 s. */
const PEAK_DECAY = 0.999;

function jumpCost(fromHz: number, toHz: number): number {
  if (fromHz === 0 && toHz === 0) return 0;
  if (fromHz === 0 || toHz === 0) return VOICING_CHANGE_COST;
  return OCTAVE_JUMP_COST * Math.abs(Math.log2(fromHz / toHz));
}
