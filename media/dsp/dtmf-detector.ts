import { ALAW_TO_LINEAR, type G711Codec, MULAW_TO_LINEAR } from '../codecs/g711.ts';

/**
 * Detects key presses in audio (ITU-T Q.23), within the limits of ITU-T Q.24. 8 kHz, linear, 16 bit.
 *
 * Every 10 ms it measures the eight tones in the last 20 ms (Goertzel filters on a Hann window). Phase changes give the
 * exact frequencies. A digit's two tones contain nearly all energy, are loud enough, have similar levels, are on
 * frequency and lack harmonics. Speech rarely meets all of that twice in a row.
 */

const SAMPLE_RATE_HZ = 8000;
const SAMPLES_PER_MS = SAMPLE_RATE_HZ / 1000;
const HOP = 80;
const HOP_MS = HOP / SAMPLES_PER_MS;
const WINDOW = 2 * HOP;
const TONES_HZ = [697, 770, 852, 941, 1209, 1336, 1477, 1633] as const;
const KEYS = '123A456B789C*0#D';

/** Q.24: up to 1.5 % is accepted, 3.5 % rejected. */
const MOST_DEVIATION = 0.025;
/** Twist, the high tone against the low one. Q.24 (AT&T) accepts +4 dB and -8 dB. */
const MOST_HIGH_OVER_LOW = 10 ** (5 / 10);
const MOST_LOW_OVER_HIGH = 10 ** (9 / 10);
/** Mean square of a tone at -29 dBm0. A full-scale sine is +3.14 dBm0 (ITU-T G.711). Q.24 accepts -25 dBm0. */
const LEAST_TONE_POWER = (32_768 ** 2 / 2) * 10 ** ((-29 - 3.14) / 10);
/** Energy share of the two tones. White noise at 15 dB SNR leaves 0.97 on average. */
const LEAST_SHARE = 0.86;
/** The share at the nominal frequencies, before the actual ones are known: reduced by deviation and twist. */
const LEAST_RAW_SHARE = 0.34;
const LEAST_LOW_SHARE = 0.1;
/** Second harmonic against its tone: -13 dB. Voices have stronger ones. */
const MOST_HARMONIC = 0.05;
/**
 * Least relative deviation of the high tone from the octave of the low one, which sung vowels hit. Tones up to 1.5 %
 * off deviate more.
 */
const LEAST_OCTAVE_MISS = 0.01;
/** A harmonic closer to the other tone cannot be distinguished from it. */
const HARMONIC_CLEARANCE_HZ = 200;
/** Q.24: 40 ms is a press, 24 ms is not. */
const LEAST_PRESS_MS = 31;
const LEAST_HITS = 2;
/** Power of a hop against that of the tones, which beat. */
const MOST_EDGE = 1.2;
/** Windows without the digit that end a press: for a pause of 30 ms, not an interruption of 10 ms. */
const MOST_MISSED = 3;
/** Hops lost in one burst that a press survives if the same digit precedes and follows. */
const MOST_LOST = 5;
/** The same if its tones also continue in phase: 200 ms, the limit of the frequency estimate. */
const MOST_LOST_IN_PHASE = 20;
/** Radians. Two presses look like one once in 17 times, and only if the whole pause was lost. */
const MOST_PHASE_ERROR = 0.75;

const HANN = Float64Array.from({ length: WINDOW }, (_, i) => 0.5 - 0.5 * Math.cos((2 * Math.PI * (i + 0.5)) / WINDOW));
const HANN_SUM = HANN.reduce((sum, weight) => sum + weight, 0);
const HANN_ENERGY = HANN.reduce((sum, weight) => sum + weight * weight, 0);
/** Mean square of a sine from the squared magnitude of its Goertzel filter. */
const POWER_SCALE = 2 / (HANN_SUM * HANN_SUM);
const RADIANS = TONES_HZ.map((hz) => (2 * Math.PI * hz) / SAMPLE_RATE_HZ);
const COEFFICIENTS = Float64Array.from(RADIANS, (radians) => 2 * Math.cos(radians));
const HARMONIC_COEFFICIENTS = Float64Array.from(RADIANS, (radians) => 2 * Math.cos(2 * radians));

/** Scratch memory, shared by the detectors of a thread. */
const weighed = new Float64Array(WINDOW);
const powers = new Float64Array(TONES_HZ.length);
const measuredHz = new Float64Array(TONES_HZ.length);
/** In radians, against an oscillator at the nominal frequency that starts with the samples of the detector. */
const measuredPhases = new Float64Array(TONES_HZ.length);

export class DtmfDetector {
  readonly #onPress: (digit: string, durationMs: number) => void;
  /** Three hops: the window, and the hop before it. */
  readonly #samples = new Int16Array(WINDOW + HOP);
  #filled = 0;
  /** Consecutive whole hops in `#samples`, at most 3. */
  #hops = 0;
  /** Mean squares of the last three hops, newest last. */
  readonly #hopPowers = new Float64Array(3);
  /** Index in `KEYS` of the current press; -1 without one. */
  #key = -1;
  #isReported = false;
  #hits = 0;
  #missed = 0;
  #lost = 0;
  /** Sum of the hops' mean squares. Divided by that of the two tones, it is the length in hops. */
  #pressPower = 0;
  /** Mean square of the two tones: in the newest hit, and the maximum of this press. */
  #tonePower = 0;
  #peakPower = 0;
  /** Power of the hops since the last hit. They belong to the press if it continues. */
  #sincePower = 0;
  /** Power of the first hop since the last hit, in which the tones may have ended. */
  #edgePower = 0;
  /** Samples since the start, including lost ones. */
  #position = 0;
  /** Tones of the current press. */
  readonly #lowTrace = new ToneTrace();
  readonly #highTrace = new ToneTrace();

  /** `onPress` is called once per press, at its end or by `reportPress`. */
  constructor(onPress: (digit: string, durationMs: number) => void) {
    this.#onPress = onPress;
  }

  /** Adds G.711 octets `from`..`to`. Allocates nothing. */
  addG711(codec: G711Codec, octets: Uint8Array, from: number, to: number): void {
    const table = codec === 'PCMU' ? MULAW_TO_LINEAR : ALAW_TO_LINEAR;
    const samples = this.#samples;
    for (let at = from; at < to; ) {
      const until = Math.min(to, at + HOP - this.#filled);
      let slot = WINDOW + this.#filled;
      this.#filled += until - at;
      while (at < until) samples[slot++] = table[octets[at++]!]!;
      if (this.#filled === HOP) this.#takeHop();
    }
  }

  /** Adds the first `count` samples. Allocates nothing. */
  addSamples(added: Int16Array, count = added.length): void {
    for (let at = 0; at < count; ) {
      const until = Math.min(count, at + HOP - this.#filled);
      let slot = WINDOW + this.#filled;
      this.#filled += until - at;
      while (at < until) this.#samples[slot++] = added[at++]!;
      if (this.#filled === HOP) this.#takeHop();
    }
  }

  /** Adds samples that the network lost: whether the key was down is unknown. */
  addLoss(samples: number): void {
    this.#forget();
    this.#position += samples;
    this.#lost += Math.floor(samples / HOP);
    this.#endIfOver();
  }

  /** Adds samples that the speaker did not send because it was silent. */
  addSilence(samples: number): void {
    this.#forget();
    this.#position += samples;
    this.#missed += Math.floor(samples / HOP);
    this.#endIfOver();
  }

  /** Reports the current press early, because no samples arrive. It is not reported again if it continues. */
  reportPress(): void {
    const durationMs = this.#unreportedMs();
    if (durationMs === 0) return;
    this.#isReported = true;
    this.#onPress(KEYS[this.#key]!, durationMs);
  }

  end(): void {
    this.#forget();
    this.#endPress();
  }

  #forget(): void {
    this.#position += this.#filled;
    this.#filled = 0;
    this.#hops = 0;
    this.#hopPowers.fill(0);
  }

  #takeHop(): void {
    const samples = this.#samples;
    const hopPowers = this.#hopPowers;
    let energy = 0;
    for (let i = WINDOW; i < WINDOW + HOP; i++) energy += samples[i]! * samples[i]!;
    hopPowers[0] = hopPowers[1]!;
    hopPowers[1] = hopPowers[2]!;
    hopPowers[2] = energy / HOP;
    if (this.#hops < 3) this.#hops += 1;
    if (this.#hops === 3) this.#judge(this.#findKey());
    else if (this.#key >= 0) this.#takeUnmeasured(hopPowers[2]!);
    samples.copyWithin(0, HOP);
    this.#filled = 0;
    this.#position += HOP;
  }

  /** Handles a hop after a gap, before a window is complete. */
  #takeUnmeasured(power: number): void {
    this.#sincePower += power;
    if (power > this.#peakPower / 4) return;
    this.#missed += 1;
    this.#endIfOver();
  }

  #judge(key: number): void {
    const hopPowers = this.#hopPowers;
    const newest = hopPowers[2]!;
    if (this.#lost > MOST_LOST && key === this.#key && !this.#isInPhase(key)) this.#endPress();
    if (key >= 0 && key === this.#key) {
      this.#hits += 1;
      this.#trace(key);
      this.#pressPower += this.#sincePower + newest + this.#lost * this.#tonePower;
      this.#peakPower = Math.max(this.#peakPower, this.#tonePower);
      this.#sincePower = 0;
      this.#edgePower = 0;
      this.#missed = 0;
      this.#lost = 0;
      return;
    }
    if (this.#key >= 0) {
      if (this.#missed === 0) this.#edgePower = newest;
      this.#missed += 1;
      this.#sincePower += newest;
      if (key >= 0) this.#endPress();
      else this.#endIfOver();
    }
    if (key < 0) return;
    this.#key = key;
    this.#hits = 1;
    this.#lowTrace.clear();
    this.#highTrace.clear();
    this.#trace(key);
    this.#peakPower = this.#tonePower;
    this.#pressPower = this.#edge(hopPowers[0]!) + hopPowers[1]! + newest;
  }

  /** Records the tones that `#findKey` measured. */
  #trace(key: number): void {
    const [low, high] = [key >> 2, 4 + (key & 3)];
    this.#lowTrace.add(low, this.#startsAt);
    this.#highTrace.add(high, this.#startsAt);
  }

  /** Whether the tones that `#findKey` measured may continue those from before the loss. */
  #isInPhase(key: number): boolean {
    const [low, high] = [key >> 2, 4 + (key & 3)];
    return this.#lowTrace.goesOn(low, this.#startsAt) && this.#highTrace.goesOn(high, this.#startsAt);
  }

  /** Position of the first of `#samples`. */
  get #startsAt(): number {
    return this.#position - WINDOW;
  }

  /** Power of a hop in which the tones may have begun or ended; a louder one is other sound. */
  #edge(power: number): number {
    return power > MOST_EDGE * this.#peakPower ? 0 : power;
  }

  #endIfOver(): void {
    if (this.#key < 0) {
      this.#missed = 0;
      this.#lost = 0;
      return;
    }
    const isPause = this.#missed > 0 && this.#missed + this.#lost > MOST_MISSED;
    if (isPause || this.#lost > MOST_LOST_IN_PHASE) this.#endPress();
  }

  #endPress(): void {
    const key = this.#key;
    if (key < 0) return;
    const durationMs = this.#unreportedMs();
    this.#key = -1;
    this.#isReported = false;
    this.#hits = 0;
    this.#missed = 0;
    this.#lost = 0;
    this.#sincePower = 0;
    this.#edgePower = 0;
    if (durationMs > 0) this.#onPress(KEYS[key]!, durationMs);
  }

  /** Length of the current press; 0 if it is too short, or already reported. */
  #unreportedMs(): number {
    if (this.#key < 0 || this.#isReported || this.#hits < LEAST_HITS) return 0;
    const power = this.#pressPower + this.#edge(this.#edgePower);
    const durationMs = Math.round((power / this.#peakPower) * HOP_MS);
    return durationMs >= LEAST_PRESS_MS ? durationMs : 0;
  }

  /** Index of the key whose tones fill the newest window; -1 without one. */
  #findKey(): number {
    const samples = this.#samples;
    const loudest = this.#hopPowers[1]! + this.#hopPowers[2]!;
    if (loudest < 2 * LEAST_TONE_POWER) return -1;
    let energy = 0;
    for (let i = 0; i < WINDOW; i++) {
      const value = samples[HOP + i]! * HANN[i]!;
      weighed[i] = value;
      energy += value * value;
    }
    const total = energy / HANN_ENERGY;
    measureFour(0);
    const low = strongestOf(0);
    if (powers[low]! < LEAST_LOW_SHARE * total) return -1;
    measureFour(4);
    const high = strongestOf(4);
    if (powers[low]! + powers[high]! < LEAST_RAW_SHARE * total) return -1;
    const lowPower = this.#powerOf(low);
    const highPower = this.#powerOf(high);
    if (lowPower < LEAST_TONE_POWER || highPower < LEAST_TONE_POWER) return -1;
    if (lowPower + highPower < LEAST_SHARE * total) return -1;
    if (highPower > lowPower * MOST_HIGH_OVER_LOW || lowPower > highPower * MOST_LOW_OVER_HIGH) return -1;
    if (Math.abs(measuredHz[high]! - 2 * measuredHz[low]!) < LEAST_OCTAVE_MISS * measuredHz[high]!) return -1;
    if (hasHarmonic(low, high, lowPower) || hasHarmonic(high, low, highPower)) return -1;
    this.#tonePower = lowPower + highPower;
    return 4 * low + high - 4;
  }

  /** Mean square of a tone at its actual frequency; 0 if that is too far from the key's. */
  #powerOf(tone: number): number {
    if (powers[tone] === 0) return 0;
    const before = phaseOf(this.#samples, 0, tone);
    const now = phaseOf(this.#samples, HOP, tone);
    const radians = withinHalfTurn(now - before);
    const offHz = (radians * SAMPLE_RATE_HZ) / (2 * Math.PI * HOP);
    if (Math.abs(offHz) > TONES_HZ[tone]! * MOST_DEVIATION) return 0;
    measuredHz[tone] = TONES_HZ[tone]! + offHz;
    measuredPhases[tone] = now;
    return powers[tone]! / hannResponse((offHz * WINDOW) / SAMPLE_RATE_HZ);
  }
}

/** Last position and phase of a tone, and its mean frequency. Allocates nothing. */
class ToneTrace {
  #phase = 0;
  #position = 0;
  #offHz = 0;
  #count = 0;

  clear(): void {
    this.#offHz = 0;
    this.#count = 0;
  }

  /** @param startsAt position of the samples in which `tone` was measured */
  add(tone: number, startsAt: number): void {
    this.#phase = phaseAt(tone, startsAt);
    this.#position = startsAt;
    this.#offHz += measuredHz[tone]! - TONES_HZ[tone]!;
    this.#count += 1;
  }

  goesOn(tone: number, startsAt: number): boolean {
    const offHz = (this.#offHz + measuredHz[tone]! - TONES_HZ[tone]!) / (this.#count + 1);
    const expected = this.#phase + (2 * Math.PI * offHz * (startsAt - this.#position)) / SAMPLE_RATE_HZ;
    return Math.abs(withinHalfTurn(phaseAt(tone, startsAt) - expected)) < MOST_PHASE_ERROR;
  }
}

/** Measured phase against an oscillator that began at position 0. */
function phaseAt(tone: number, startsAt: number): number {
  return measuredPhases[tone]! - ((TONES_HZ[tone]! * startsAt) % SAMPLE_RATE_HZ) * ((2 * Math.PI) / SAMPLE_RATE_HZ);
}

function withinHalfTurn(radians: number): number {
  return radians - 2 * Math.PI * Math.round(radians / (2 * Math.PI));
}

/** Mean squares of four tones in `weighed`, uncorrected, into `powers`. */
function measureFour(first: number): void {
  const [c0, c1, c2, c3] = [
    COEFFICIENTS[first]!,
    COEFFICIENTS[first + 1]!,
    COEFFICIENTS[first + 2]!,
    COEFFICIENTS[first + 3]!,
  ];
  let [p0, p1, p2, p3] = [0, 0, 0, 0];
  let [q0, q1, q2, q3] = [0, 0, 0, 0];
  for (let i = 0; i < WINDOW; i++) {
    const sample = weighed[i]!;
    const r0 = c0 * p0 + (sample - q0);
    const r1 = c1 * p1 + (sample - q1);
    const r2 = c2 * p2 + (sample - q2);
    const r3 = c3 * p3 + (sample - q3);
    q0 = p0;
    q1 = p1;
    q2 = p2;
    q3 = p3;
    p0 = r0;
    p1 = r1;
    p2 = r2;
    p3 = r3;
  }
  powers[first] = powerOf(p0, q0, c0);
  powers[first + 1] = powerOf(p1, q1, c1);
  powers[first + 2] = powerOf(p2, q2, c2);
  powers[first + 3] = powerOf(p3, q3, c3);
}

function powerOf(previous: number, beforePrevious: number, coefficient: number): number {
  const squares = previous * previous + beforePrevious * beforePrevious;
  return POWER_SCALE * (squares - coefficient * previous * beforePrevious);
}

function strongestOf(first: number): number {
  let strongest = first;
  for (let tone = first + 1; tone < first + 4; tone++) if (powers[tone]! > powers[strongest]!) strongest = tone;
  return strongest;
}

function hasHarmonic(tone: number, other: number, power: number): boolean {
  if (Math.abs(2 * TONES_HZ[tone]! - TONES_HZ[other]!) < HARMONIC_CLEARANCE_HZ) return false;
  const coefficient = HARMONIC_COEFFICIENTS[tone]!;
  let previous = 0;
  let beforePrevious = 0;
  for (let i = 0; i < WINDOW; i++) {
    const current = coefficient * previous + (weighed[i]! - beforePrevious);
    beforePrevious = previous;
    previous = current;
  }
  return powerOf(previous, beforePrevious, coefficient) > MOST_HARMONIC * power;
}

/** Phase of a tone in the window that begins at `from`, against an oscillator that begins with the samples. */
function phaseOf(samples: Int16Array, from: number, tone: number): number {
  const coefficient = COEFFICIENTS[tone]!;
  let previous = 0;
  let beforePrevious = 0;
  for (let i = 0; i < WINDOW; i++) {
    const current = coefficient * previous + (samples[from + i]! * HANN[i]! - beforePrevious);
    beforePrevious = previous;
    previous = current;
  }
  const radians = RADIANS[tone]!;
  const real = previous - beforePrevious * Math.cos(radians);
  const imaginary = beforePrevious * Math.sin(radians);
  return Math.atan2(imaginary, real) - radians * (from + WINDOW - 1);
}

/** Window response to a sine within the main lobe, `bins` off its frequency, relative to the peak power. */
function hannResponse(bins: number): number {
  if (Math.abs(bins) < 1e-6) return 1;
  const amplitude = Math.sin(Math.PI * bins) / (Math.PI * bins * (1 - bins * bins));
  return amplitude * amplitude;
}
