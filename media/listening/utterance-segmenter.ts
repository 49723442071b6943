import type { UtteranceMessage, UtteranceSummary } from '../../machines/utterances.ts';
import { BackgroundLevel, speechSnrDb } from '../dsp/speech-snr.ts';
import type { SegmentationRules } from './segmentation-rules.ts';
import { WindowRing } from './window-ring.ts';
import { WINDOW_MS, type WindowKind, windowsIn } from './windows.ts';

/**
 * Splits the windows of one channel into utterances. An utterance begins when most of the recent windows are speech,
 * and includes the pre-roll before them. Its windows are posted as they arrive. In a pause, only a short post-roll is
 * posted; the rest is kept in case speech continues. A pause that probably ends the utterance is posted, so that the
 * recogniser finishes the text meanwhile. A pause that is long enough ends the utterance at the end of speech. An
 * utterance that grows too long is split at a pause in its last part, which is held back for that.
 */

/** Includes the start of a word, before the detector is certain. */
const PRE_ROLL_WINDOWS = windowsIn(300);
const POST_ROLL_WINDOWS = windowsIn(200);
/** Windows of speech, among the most recent ones, that start an utterance. A click fills at most two. */
const ONSET_WINDOWS = 5;
const FEWEST_ONSET_WINDOWS = 3;
const TONE_DELAY_WINDOWS = 4;
/** Shorter speech is not a word. */
const SHORTEST_SPEECH_MS = 120;
/** Below this the background is louder than the speech, and recognisers hallucinate. */
const POOR_SNR_DB = 0;
/** About 100 ms. */
const BLOCK_WINDOWS = 3;
const BACKGROUND_HALF_LIFE_WINDOWS = windowsIn(2000);
const FEWEST_BACKGROUND_WINDOWS = windowsIn(250);
const FEWEST_SPEECH_WINDOWS = windowsIn(500);
/** -26 dBov, the nominal level of telephone speech (ITU-T P.56, P.830). */
const USUAL_SPEECH_POWER = 32768 * 32768 * 10 ** (-26 / 10);

interface OpenUtterance {
  utteranceId: number;
  startWindow: number;
  lastSpeechWindow: number;
  /** First window after the last posted pause, or of the utterance. */
  phraseStartWindow: number;
  speechWindows: number;
  speechPower: number;
  powerBefore: number | null;
}

interface SegmenterOptions {
  channel: number;
  rules: SegmentationRules;
  nextUtteranceId: () => number;
  /** The samples of `utterance.audio` may be transferred. */
  post: (message: UtteranceMessage) => void;
  onSpeechStarted: (utteranceId: number, atMs: number) => void;
}

export class UtteranceSegmenter {
  readonly #options: SegmenterOptions;
  #rules: SegmentationRules;
  #ring: WindowRing;
  #utterance: OpenUtterance | null = null;
  /** Number of windows so far; index of the next one. */
  #windows = 0;
  /** Index of the next window to post. While idle: the first that belongs to no utterance. */
  #unposted = 0;
  readonly #recentBackground = new BackgroundLevel();
  readonly #allBackground = new BackgroundLevel();
  #utterances = 0;
  #speechWindows = 0;
  #speechPower = 0;
  #streamEndMs = Number.POSITIVE_INFINITY;

  constructor(options: SegmenterOptions) {
    this.#options = options;
    this.#rules = options.rules;
    this.#ring = new WindowRing(capacityFor(options.rules));
  }

  /** Adds the next window. `power` is its mean power before enhancement. Copies the samples. */
  add(samples: Int16Array, power: number, kind: WindowKind): void {
    const window = this.#windows++;
    this.#ring.put(window, samples, power, kind === 'speech');
    if (kind === 'background') this.#learnBackground(power);
    if (kind === 'tone') this.#takeBack(window);
    if (this.#utterance === null) this.#beginWhenSpeech(window);
    else this.#continue(this.#utterance, window);
  }

  configure(rules: SegmentationRules): void {
    this.#rules = rules;
    const capacity = capacityFor(rules);
    if (capacity > this.#ring.capacity) this.#ring = this.#ring.grownTo(capacity, this.#windows);
  }

  finish(streamEndMs: number): void {
    this.#streamEndMs = streamEndMs;
    this.endUtterance();
  }

  /** Ends the open utterance, if any, without waiting for a pause. Later speech begins the next one. */
  endUtterance(): void {
    if (this.#utterance !== null) this.#end(this.#utterance, this.#speechEnd(this.#utterance));
  }

  get utterances(): number {
    return this.#utterances;
  }

  get isOpen(): boolean {
    return this.#utterance !== null;
  }

  /** Totals of the stream: windows of speech, the sum of their powers, and the power of the background. */
  totals(): { speechWindows: number; speechPower: number; backgroundPower: number | null } {
    return {
      speechWindows: this.#speechWindows,
      speechPower: this.#speechPower,
      backgroundPower: this.#allBackground.medianPower(FEWEST_BACKGROUND_WINDOWS),
    };
  }

  /** Speech so far over the recent background. Assumes a nominal speech level until there was speech. */
  runningSnrDb(): number {
    const windows = this.#speechWindows + (this.#utterance?.speechWindows ?? 0);
    const power = this.#speechPower + (this.#utterance?.speechPower ?? 0);
    const background = this.#recentBackground.medianPower(FEWEST_BACKGROUND_WINDOWS) ?? 0;
    return speechSnrDb(windows < FEWEST_SPEECH_WINDOWS ? USUAL_SPEECH_POWER : power / windows, background);
  }

  #beginWhenSpeech(window: number): void {
    let speechWindows = 0;
    let first = window;
    const from = Math.max(this.#unposted, window - ONSET_WINDOWS + 1, 0);
    for (let candidate = window; candidate >= from; candidate--) {
      if (!this.#ring.isSpeech(candidate)) continue;
      speechWindows += 1;
      first = candidate;
    }
    if (speechWindows >= FEWEST_ONSET_WINDOWS) this.#begin(Math.max(this.#unposted, first - PRE_ROLL_WINDOWS), first);
  }

  #begin(startWindow: number, firstSpeechWindow: number): void {
    const utteranceId = this.#options.nextUtteranceId();
    const utterance: OpenUtterance = {
      utteranceId,
      startWindow,
      lastSpeechWindow: firstSpeechWindow,
      phraseStartWindow: startWindow,
      speechWindows: 0,
      speechPower: 0,
      powerBefore: this.#recentBackground.medianPower(FEWEST_BACKGROUND_WINDOWS),
    };
    this.#utterance = utterance;
    this.#unposted = startWindow;
    const startMs = startWindow * WINDOW_MS;
    this.#options.post({ type: 'utterance.begin', utteranceId, channel: this.#options.channel, startMs });
    this.#options.onSpeechStarted(utteranceId, firstSpeechWindow * WINDOW_MS);
    for (let window = startWindow; window < this.#windows; window++) this.#count(utterance, window);
    this.#postUntil(this.#postable(utterance), BLOCK_WINDOWS);
  }

  #continue(utterance: OpenUtterance, window: number): void {
    this.#count(utterance, window);
    const lengthMs = (this.#windows - utterance.startWindow) * WINDOW_MS;
    const silentMs = (window - utterance.lastSpeechWindow) * WINDOW_MS;
    if (silentMs >= this.#rules.pauseMs && lengthMs >= this.#rules.shortestMs) {
      this.#end(utterance, this.#speechEnd(utterance));
    } else if (lengthMs >= this.#rules.longestMs) {
      this.#cut(utterance);
    } else {
      this.#postUntil(this.#postable(utterance), BLOCK_WINDOWS);
      if (this.#isPhraseOver(utterance, silentMs)) this.#postPause(utterance);
    }
  }

  /** Whether a new pause must be posted. */
  #isPhraseOver(utterance: OpenUtterance, silentMs: number): boolean {
    const { pauses } = this.#rules;
    if (pauses === null) return false;
    const phraseWindows = this.#postable(utterance) - utterance.phraseStartWindow;
    const isLong = phraseWindows * WINDOW_MS >= pauses.longPhraseMs;
    return phraseWindows > 0 && silentMs >= (isLong ? pauses.breathMs : pauses.likelyEndMs);
  }

  #postPause(utterance: OpenUtterance): void {
    const untilWindow = this.#withPostRoll(this.#speechEnd(utterance));
    // Where a split may come, the rest of the phrase is not posted yet.
    if (untilWindow > this.#postable(utterance)) return;
    this.#postUntil(untilWindow, 1);
    utterance.phraseStartWindow = untilWindow;
    this.#options.post({ type: 'utterance.pause', utteranceId: utterance.utteranceId });
  }

  /** Tones are recognised with a delay, in which they may have counted as speech. */
  #takeBack(window: number): void {
    for (let before = Math.max(0, window - TONE_DELAY_WINDOWS); before < window; before++) {
      if (!this.#ring.isSpeech(before)) continue;
      this.#ring.silence(before);
      if (this.#utterance === null || before < this.#utterance.startWindow) continue;
      this.#utterance.speechWindows -= 1;
      this.#utterance.speechPower -= this.#ring.power(before);
    }
    if (this.#utterance !== null) this.#findLastSpeech(this.#utterance);
  }

  /** Searches backwards from the previous value. */
  #findLastSpeech(utterance: OpenUtterance): void {
    while (utterance.lastSpeechWindow > utterance.startWindow && !this.#ring.isSpeech(utterance.lastSpeechWindow)) {
      utterance.lastSpeechWindow -= 1;
    }
  }

  #count(utterance: OpenUtterance, window: number): void {
    if (!this.#ring.isSpeech(window)) return;
    utterance.lastSpeechWindow = window;
    utterance.speechWindows += 1;
    utterance.speechPower += this.#ring.power(window);
  }

  /** The window up to which audio certainly belongs to the utterance. */
  #postable(utterance: OpenUtterance): number {
    const untilPause = Math.min(this.#windows, utterance.lastSpeechWindow + 1 + POST_ROLL_WINDOWS);
    return Math.min(untilPause, utterance.startWindow + windowsIn(this.#rules.earliestCutMs));
  }

  #speechEnd(utterance: OpenUtterance): number {
    return utterance.lastSpeechWindow + 1;
  }

  /** Splits a long utterance at the longest pause or quietest point of its last part. The rest begins the next one. */
  #cut(utterance: OpenUtterance): void {
    const from = utterance.startWindow + windowsIn(this.#rules.earliestCutMs);
    const cutWindow = this.#ring.quietestBetween(from, this.#windows);
    this.#withdraw(utterance, cutWindow);
    const endWindow = this.#speechEnd(utterance);
    this.#end(utterance, endWindow, Math.min(cutWindow, endWindow + POST_ROLL_WINDOWS));
    for (let window = cutWindow; window < this.#windows; window++) {
      if (!this.#ring.isSpeech(window)) continue;
      this.#begin(cutWindow, window);
      return;
    }
  }

  #withdraw(utterance: OpenUtterance, cutWindow: number): void {
    for (let window = cutWindow; window < this.#windows; window++) {
      if (!this.#ring.isSpeech(window)) continue;
      utterance.speechWindows -= 1;
      utterance.speechPower -= this.#ring.power(window);
    }
    utterance.lastSpeechWindow = Math.min(utterance.lastSpeechWindow, cutWindow - 1);
    this.#findLastSpeech(utterance);
  }

  #end(utterance: OpenUtterance, endWindow: number, untilWindow = this.#withPostRoll(endWindow)): void {
    this.#postUntil(untilWindow, 1);
    this.#utterance = null;
    const { utteranceId } = utterance;
    const summary = this.#summaryOf(utterance, endWindow);
    const about = { utteranceId, summary, pauseMs: Math.max(0, this.#windows - endWindow) * WINDOW_MS };
    if (summary.speechMs < SHORTEST_SPEECH_MS) {
      this.#options.post({ type: 'utterance.discard', ...about, reason: 'speech_end_too_short' });
      return;
    }
    this.#speechWindows += utterance.speechWindows;
    this.#speechPower += utterance.speechPower;
    if (summary.snrDb !== null && summary.snrDb < POOR_SNR_DB) {
      this.#options.post({ type: 'utterance.discard', ...about, reason: 'low_snr_dropped' });
      return;
    }
    this.#utterances += 1;
    this.#options.post({ type: 'utterance.end', ...about });
  }

  #withPostRoll(endWindow: number): number {
    return Math.max(this.#unposted, Math.min(this.#windows, endWindow + POST_ROLL_WINDOWS));
  }

  #summaryOf(utterance: OpenUtterance, endWindow: number): UtteranceSummary {
    const { speechWindows, speechPower, powerBefore } = utterance;
    // Noise that begins after the speech does not count.
    const powerSince = this.#recentBackground.medianPower(FEWEST_BACKGROUND_WINDOWS);
    const background = Math.min(powerBefore ?? Number.POSITIVE_INFINITY, powerSince ?? Number.POSITIVE_INFINITY);
    return {
      channel: this.#options.channel,
      startMs: utterance.startWindow * WINDOW_MS,
      endMs: Math.min(endWindow * WINDOW_MS, this.#streamEndMs),
      speechMs: speechWindows * WINDOW_MS,
      snrDb: Number.isFinite(background) ? speechSnrDb(speechPower / Math.max(1, speechWindows), background) : null,
    };
  }

  #learnBackground(power: number): void {
    this.#recentBackground.add(power);
    this.#allBackground.add(power);
    if (this.#windows % BACKGROUND_HALF_LIFE_WINDOWS === 0) this.#recentBackground.fade(0.5);
  }

  /** Posts in blocks; fewer than `fewestWindows` wait. */
  #postUntil(untilWindow: number, fewestWindows: number): void {
    const utteranceId = this.#utterance?.utteranceId;
    if (utteranceId === undefined) return;
    while (untilWindow - this.#unposted >= fewestWindows) {
      const windows = Math.min(BLOCK_WINDOWS, untilWindow - this.#unposted);
      const samples = this.#ring.copy(this.#unposted, windows);
      this.#unposted += windows;
      this.#options.post({ type: 'utterance.audio', utteranceId, samples });
    }
  }
}

function capacityFor(rules: SegmentationRules): number {
  const pause = Math.max(rules.pauseMs, Math.min(rules.shortestMs, rules.longestMs));
  return windowsIn(Math.max(pause, rules.longestMs - rules.earliestCutMs)) + PRE_ROLL_WINDOWS + 2 * ONSET_WINDOWS;
}
