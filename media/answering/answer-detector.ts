import type { AnswerResult } from '../../machines/events.ts';
import { meanPower } from '../dsp/level.ts';
import { TONE_HOP_SAMPLES } from '../dsp/single-tone.ts';
import { ToneBursts } from './tone-bursts.ts';
import { CADENCE_WINDOW_MS, CADENCE_WINDOW_SAMPLES, type CadenceWindow, VoiceCadence } from './voice-cadence.ts';

/**
 * Answering machine detection. A person says a word or two and waits: `human`. A machine keeps talking: `machine`, then
 * `beep` when it starts to record. Fax machines send tones. Time is counted in samples.
 */

export const ANSWER_WINDOW_SAMPLES = CADENCE_WINDOW_SAMPLES;

/** A greeting is longer than a person's first words. */
const GREETING_MS = 2000;
/** Pause of a person after a word or two, and after more. A machine pauses as long between sentences. */
const WAIT_AFTER_WORD_MS = 704;
const WAIT_AFTER_WORDS_MS = 992;
const A_WORD_OR_TWO_MS = 1200;
/** Shorter sounds are coughs. */
const SHORTEST_WORD_MS = 120;
/** Without a word or tone by then the result is `unknown`; one that has begun may finish. */
const UNDECIDED_AFTER_MS = 5000;
const UNDECIDED_AT_LAST_MS = 8000;
/** An echo is at least 12 dB below the audio sent to the party. */
const ECHO_SHARE = 1 / 16;
/** Longest wait for the beep of a machine. */
const BEEP_WITHIN_MS = 60_000;

const BEEP = { lowestHz: 350, highestHz: 2600, shortestMs: 72, longestMs: 2000 };
const QUIET_AFTER_BEEP_MS = 192;
/** Network tones: without a greeting they mean ringing or busy. */
const NETWORK_TONES_BELOW_HZ = 520;
/** Recorder warning tone: 1400 Hz for up to half a second. Ignored without a greeting before it. */
const RECORDER_TONE = { hz: 1400, toleranceHz: 20, longestMs: 600 };
/** Fax calling tone, ITU-T T.30 §4.2.3: 1100 Hz, half a second every three and a half. */
const CALLING_TONE = { hz: 1100, toleranceHz: 38, shortestMs: 400, longestMs: 600, quietMs: 992 };
/** Fax answering tone, ITU-T T.30 §4.2.1 and V.25: 2100 Hz, 2.6 to 4 s. */
const ANSWERING_TONE = { hz: 2100, toleranceHz: 30, shortestMs: 2000 };
/** A tone that started earlier lost its beginning, because it sounded at the answer. */
const CUT_BEFORE_MS = 96;

export class AnswerDetector {
  readonly #cadence = new VoiceCadence();
  readonly #bursts = new ToneBursts();
  readonly #hops: readonly Int16Array[];
  readonly #window = new Int16Array(ANSWER_WINDOW_SAMPLES);
  readonly #facts: CadenceWindow = { power: 0, leastPower: 0, isTone: false };
  #timeMs = 0;
  #isMachine = false;
  #isOver = false;

  constructor() {
    this.#hops = [0, TONE_HOP_SAMPLES].map((from) => this.#window.subarray(from, from + TONE_HOP_SAMPLES));
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /**
   * Analyses the next 32 ms at 8 kHz. The window may contain an echo of audio with `sentPower` (16-bit steps squared).
   * Returns a result once; `beep` may follow `machine`. Allocates nothing.
   */
  add(window: Int16Array, sentPower = 0): AnswerResult | null {
    if (this.#isOver) return null;
    this.#timeMs += CADENCE_WINDOW_MS;
    this.#window.set(window);
    let isTone = false;
    for (const hop of this.#hops) {
      this.#bursts.add(hop);
      isTone ||= this.#bursts.isPure;
    }
    if (!this.#isMachine) {
      const facts = this.#facts;
      facts.power = meanPower(window);
      facts.leastPower = sentPower * ECHO_SHARE;
      facts.isTone = isTone && this.#bursts.soundingMs > 0;
      this.#cadence.add(window, facts);
    }
    const result = this.#isMachine ? this.#beepOfMachine() : this.#firstResult();
    this.#isMachine ||= result === 'machine';
    this.#isOver = this.#isMachine ? result === 'beep' || this.#timeMs >= BEEP_WITHIN_MS : result !== null;
    return result;
  }

  #firstResult(): AnswerResult | null {
    const { voicedMs, restMs } = this.#cadence;
    const tone = this.#toneResult();
    if (tone !== null) return tone;
    if (this.#isToneOpen) return this.#timeMs >= UNDECIDED_AT_LAST_MS ? 'unknown' : null;
    if (voicedMs >= GREETING_MS) return 'machine';
    const waitMs = voicedMs <= A_WORD_OR_TWO_MS ? WAIT_AFTER_WORD_MS : WAIT_AFTER_WORDS_MS;
    if (voicedMs >= SHORTEST_WORD_MS && restMs >= waitMs) return 'human';
    if (restMs >= waitMs) this.#cadence.forget();
    const isOpen = this.#cadence.voicedMs > 0 || this.#cadence.isRising;
    return this.#timeMs >= (isOpen ? UNDECIDED_AT_LAST_MS : UNDECIDED_AFTER_MS) ? 'unknown' : null;
  }

  /** Whether a current or just ended tone may be a beep or fax tone. */
  get #isToneOpen(): boolean {
    const { soundingMs, endedMs, quietMs } = this.#bursts;
    if (soundingMs >= BEEP.shortestMs && soundingMs <= BEEP.longestMs) return true;
    return endedMs > 0 && quietMs < (this.#cadence.voicedMs > 0 ? QUIET_AFTER_BEEP_MS : CALLING_TONE.quietMs);
  }

  #toneResult(): AnswerResult | null {
    const { soundingMs, endedMs, quietMs, frequencyHz, startedAtMs } = this.#bursts;
    if (soundingMs >= ANSWERING_TONE.shortestMs && isNear(frequencyHz, ANSWERING_TONE)) return 'fax';
    if (this.#isRecorderTone) return null;
    if (this.#cadence.voicedMs > 0) return this.#beepOfMachine();
    if (endedMs === 0 || quietMs < CALLING_TONE.quietMs) return null;
    if (isNear(frequencyHz, CALLING_TONE)) {
      if (endedMs >= CALLING_TONE.shortestMs && endedMs <= CALLING_TONE.longestMs) return 'fax';
      if (startedAtMs < CUT_BEFORE_MS) return null;
    }
    return this.#isBeep && frequencyHz >= NETWORK_TONES_BELOW_HZ ? 'beep' : null;
  }

  #beepOfMachine(): 'beep' | null {
    return this.#isBeep && this.#bursts.quietMs >= QUIET_AFTER_BEEP_MS ? 'beep' : null;
  }

  /** Our own recorder, or that of a person, also plays this tone. */
  get #isRecorderTone(): boolean {
    const { endedMs, frequencyHz } = this.#bursts;
    return endedMs <= RECORDER_TONE.longestMs && isNear(frequencyHz, RECORDER_TONE);
  }

  get #isBeep(): boolean {
    const { endedMs, frequencyHz } = this.#bursts;
    const isInBand = frequencyHz >= BEEP.lowestHz && frequencyHz <= BEEP.highestHz;
    return isInBand && endedMs >= BEEP.shortestMs && endedMs <= BEEP.longestMs;
  }
}

function isNear(frequencyHz: number, { hz, toleranceHz }: { hz: number; toleranceHz: number }): boolean {
  return Math.abs(frequencyHz - hz) <= toleranceHz;
}
