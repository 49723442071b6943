import { clamp } from '../../runtime/clamp.ts';
import { PITCH_STEP_MS, PitchTracker } from './pitch.ts';
import { RunningMedian } from './running-median.ts';

export interface PitchShiftOptions {
  sampleRateHz: number;
  /** Positive is up; at most two octaves either way. */
  semitones: number;
  /** Factor on the deviation of the pitch from its centre: 0 is monotone, 1 changes nothing. At most 4. */
  range: number;
  /** Usual pitch of the voice; null: the median so far. */
  centreHz: number | null;
  /** See `PitchTracker`. */
  usualPeak: number;
}

/**
 * Changes the pitch of speech, but not its pace or timbre, by overlapping segments of two periods at the new distance
 * (TD-PSOLA: Moulines and Charpentier, "Pitch-synchronous waveform processing techniques for text-to-speech synthesis
 * using diphones", 1990). Unvoiced sound passes unchanged. Works in place with a delay of `delay`, independent of block
 * sizes.
 */
export class PitchShifter {
  /** In samples. */
  readonly delay: number;
  readonly #options: PitchShiftOptions;
  readonly #tracker: PitchTracker;
  readonly #decided: Float32Array;
  readonly #frames = new Float32Array(FRAMES_KEPT);
  #frameCount = 0;
  readonly #median = new RunningMedian();
  #framesInMedian = 0;
  readonly #samplesPerFrame: number;
  readonly #longestPeriod: number;

  /** Ring buffers of input and output, by sample time. */
  readonly #input: Float32Array;
  readonly #output: Float32Array;
  readonly #mask: number;
  #end = 0;

  /** Between voiced stretches: the next frame, and the end of the passed input. */
  #frame = 0;
  #passed = 0;
  /** In a voiced stretch: its newest pulse, the period before it, and the position of the next segment. */
  #isVoiced = false;
  #pulse = 0;
  #periodBefore = 0;
  #next = 0;
  #last = 0;
  #lastEnd = 0;

  constructor(options: PitchShiftOptions) {
    const { sampleRateHz, semitones, range } = options;
    this.#options = { ...options, semitones: clamp(semitones, -24, 24), range: clamp(range, 0, 4) };
    this.#tracker = new PitchTracker(sampleRateHz, options);
    this.#decided = new Float32Array(this.#tracker.framesBound(CHUNK));
    this.#samplesPerFrame = (PITCH_STEP_MS * sampleRateHz) / 1000;
    this.#longestPeriod = Math.ceil(sampleRateHz / LOWEST_HZ);
    this.delay = Math.ceil((DELAY_MS * sampleRateHz) / 1000);
    const kept = 2 ** Math.ceil(Math.log2(this.delay + 2 * CHUNK));
    this.#input = new Float32Array(kept);
    this.#output = new Float32Array(kept);
    this.#mask = kept - 1;
  }

  /** Processes the first `count` in place. Allocates nothing per sample. */
  process(samples: Float32Array, count: number): void {
    for (let at = 0; at < count; at += CHUNK) this.#processChunk(samples.subarray(at, Math.min(count, at + CHUNK)));
  }

  #processChunk(chunk: Float32Array): void {
    for (let i = 0; i < chunk.length; i++) this.#input[(this.#end + i) & this.#mask] = chunk[i]!;
    this.#end += chunk.length;
    const frames = this.#tracker.process(chunk, chunk.length, this.#decided);
    for (let i = 0; i < frames; i++) {
      this.#frames[this.#frameCount % FRAMES_KEPT] = this.#decided[i]!;
      this.#frameCount += 1;
    }
    this.#advance();
    const from = this.#end - chunk.length - this.delay;
    for (let i = 0; i < chunk.length; i++) {
      chunk[i] = this.#output[(from + i) & this.#mask]!;
      this.#output[(from + i) & this.#mask] = 0;
    }
  }

  /** Processes as far as the pitch is decided. No step depends on later input. */
  #advance(): void {
    const known = (this.#frameCount - 1) * this.#samplesPerFrame;
    const needed = 2 * this.#longestPeriod;
    for (;;) {
      if (this.#isVoiced) {
        if (this.#pulse + needed > known) return;
        this.#toNextPulse();
        continue;
      }
      const begins = Math.round((this.#frame - 0.5) * this.#samplesPerFrame);
      if (begins + 2 * needed > known) return;
      if (this.#hzOf(this.#frame) > 0) {
        this.#beginVoiced(Math.max(begins, this.#passed + this.#longestPeriod));
        continue;
      }
      this.#pass(begins - this.#longestPeriod);
      this.#frame += 1;
    }
  }

  /** Starts a voiced stretch at the largest peak of its first period. */
  #beginVoiced(from: number): void {
    const period = this.#periodAt(from);
    let pulse = from;
    for (let at = from; at < from + period; at++) {
      if (Math.abs(this.#input[at & this.#mask]!) > Math.abs(this.#input[pulse & this.#mask]!)) pulse = at;
    }
    this.#pass(pulse - period);
    for (let at = pulse - period; at < pulse; at++) this.#add(at, at, 1 - risingHalf((at - pulse + period) / period));
    this.#isVoiced = true;
    this.#pulse = pulse;
    this.#periodBefore = period;
    this.#next = pulse;
    this.#last = pulse;
    this.#lastEnd = pulse + period;
  }

  #toNextPulse(): void {
    const period = this.#periodAt(this.#pulse);
    const frame = Math.round((this.#pulse + period) / this.#samplesPerFrame);
    const isLast = this.#hzOf(frame) === 0;
    const pulse = isLast ? this.#pulse + period : this.#mostAlike(period);
    const until = isLast ? this.#pulse : (this.#pulse + pulse) / 2;
    while (this.#next <= until) {
      const newPeriod = this.#newPeriodAt(this.#next, period);
      this.#layDown(Math.round(this.#next), { periodAfter: pulse - this.#pulse, gain: Math.sqrt(newPeriod / period) });
      this.#next += newPeriod;
    }
    if (isLast) this.#endVoiced(frame);
    else {
      this.#periodBefore = pulse - this.#pulse;
      this.#pulse = pulse;
    }
  }

  /** Fades the input back in where the last segment fades out. */
  #endVoiced(frame: number): void {
    const length = this.#lastEnd - this.#last;
    for (let at = this.#last; at < this.#lastEnd; at++) this.#add(at, at, risingHalf((at - this.#last) / length));
    this.#passed = this.#lastEnd;
    this.#frame = frame;
    this.#isVoiced = false;
  }

  /** Adds the segment around the pulse. The gain compensates for a different pulse rate. */
  #layDown(at: number, { periodAfter, gain }: { periodAfter: number; gain: number }): void {
    const before = this.#periodBefore;
    for (let i = -before; i < 0; i++) this.#add(at + i, this.#pulse + i, gain * risingHalf((i + before) / before));
    for (let i = 0; i < periodAfter; i++) {
      this.#add(at + i, this.#pulse + i, gain * (1 - risingHalf(i / periodAfter)));
    }
    this.#last = at;
    this.#lastEnd = at + periodAfter;
  }

  #pass(to: number): void {
    for (let at = this.#passed; at < to; at++) this.#add(at, at, 1);
    this.#passed = Math.max(this.#passed, to);
  }

  #add(to: number, from: number, weight: number): void {
    if (to >= 0) this.#output[to & this.#mask]! += weight * this.#input[from & this.#mask]!;
  }

  /** The position, about a period later, whose sound best matches that around the pulse. */
  #mostAlike(period: number): number {
    const half = period >> 1;
    const shortest = Math.floor(period * (1 - MOST_JITTER));
    const longest = Math.ceil(period * (1 + MOST_JITTER));
    let best = this.#pulse + period;
    let most = 0;
    for (let lag = shortest; lag <= longest; lag++) {
      let product = 0;
      let energy = 1e-9;
      for (let i = this.#pulse - half; i < this.#pulse + half; i++) {
        const later = this.#input[(i + lag) & this.#mask]!;
        product += this.#input[i & this.#mask]! * later;
        energy += later * later;
      }
      const likeness = product / Math.sqrt(energy);
      if (likeness > most) {
        most = likeness;
        best = this.#pulse + lag;
      }
    }
    return best;
  }

  #newPeriodAt(at: number, period: number): number {
    const { sampleRateHz, semitones, range, centreHz } = this.#options;
    const newest = Math.round(at / this.#samplesPerFrame) + FRAMES_AHEAD_IN_MEDIAN;
    for (; this.#framesInMedian <= newest; this.#framesInMedian++) {
      const hz = this.#hzOf(this.#framesInMedian);
      if (hz > 0) this.#median.add(hz);
    }
    const hz = this.#hzAt(at) ?? sampleRateHz / period;
    const centre = centreHz ?? this.#median.hz ?? hz;
    return sampleRateHz / clamp(centre * (hz / centre) ** range * 2 ** (semitones / 12), LOWEST_NEW_HZ, HIGHEST_NEW_HZ);
  }

  /** In whole samples. */
  #periodAt(at: number): number {
    const hz = this.#hzAt(at);
    return hz === null ? this.#periodBefore : Math.round(this.#options.sampleRateHz / hz);
  }

  /** Interpolates between frames; null if neither is voiced. */
  #hzAt(at: number): number | null {
    const frame = Math.floor(at / this.#samplesPerFrame);
    const fraction = at / this.#samplesPerFrame - frame;
    const before = this.#hzOf(frame);
    const after = this.#hzOf(frame + 1);
    if (before > 0 && after > 0) return Math.max(LOWEST_HZ, before + (after - before) * fraction);
    return before > 0 || after > 0 ? Math.max(LOWEST_HZ, before + after) : null;
  }

  #hzOf(frame: number): number {
    return frame < 0 ? 0 : this.#frames[frame % FRAMES_KEPT]!;
  }
}

/** The tracker decides within 150 ms, and some periods of the lowest voice are needed beyond. */
const DELAY_MS = 300;
const LOWEST_HZ = 50;
const LOWEST_NEW_HZ = 30;
const HIGHEST_NEW_HZ = 900;
/** Largest relative deviation of a period from the tracked one. */
const MOST_JITTER = 0.15;
const FRAMES_AHEAD_IN_MEDIAN = 3;
const CHUNK = 512;
const FRAMES_KEPT = 128;

/** Rising half of a Hann window, 0 to 1. */
function risingHalf(part: number): number {
  return RISING_HALF[Math.round(part * TABLE_STEPS)]!;
}

const TABLE_STEPS = 4096;
const RISING_HALF = Float64Array.from(
  { length: TABLE_STEPS + 1 },
  (_, i) => 0.5 - 0.5 * Math.cos((Math.PI * i) / TABLE_STEPS),
);
