import type { UtteranceMessage, UtteranceSummary } from '../../machines/utterances.ts';
import { BackgroundLevel, speechSnrDb } from '../dsp/speech-snr.ts';
import type { SegmentationRules } from './segmentation-rules.ts';
import { WindowRing } from './window-ring.ts';
import { WINDOW_MS, type WindowKind, windowsIn } from './windows.ts';

/**
 * Cuts the windows of one channel into utterances. Idle until speech fills most of a moment; then an utterance begins,
 * with the pre-roll before it, and its windows are posted as they come. In a pause only a little post-roll is posted;
 * the rest is kept and follows if speech goes on. The pause that is long enough ends the utterance where speech ended.
 * One that grows too long is cut in a pause of its last stretch, which for that is kept, and goes on as the next.
 */

/** A word begins before the detector is sure of it. */
const PRE_ROLL_WINDOWS = windowsIn(300);
const POST_ROLL_WINDOWS = windowsIn(200);
/** Speech has begun when so many of the last windows hold it: a click fills two at most. */
const ONSET_WINDOWS = 5;
const FEWEST_ONSET_WINDOWS = 3;
const TONE_DELAY_WINDOWS = 4;
/** Less speech than this is no word. */
const SHORTEST_SPEECH_MS = 120;
/** Below this the background is louder than the speech, and recognisers invent. */
const POOR_SNR_DB = 0;
/** About 100 ms. */
const BLOCK_WINDOWS = 3;
const BACKGROUND_HALF_LIFE_WINDOWS = windowsIn(2000);
const FEWEST_BACKGROUND_WINDOWS = windowsIn(250);
const FEWEST_SPEECH_WINDOWS = windowsIn(500);
/** -26 dBov, the level that telephone speech is brought to (ITU-T P.56, P.830). */
const USUAL_SPEECH_POWER = 32768 * 32768 * 10 ** (-26 / 10);

interface OpenUtterance {
  utteranceId: number;
  startWindow: number;
  lastSpeechWindow: number;
  speechWindows: number;
  speechPower: number;
  /** Median power of the background before it. */
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
  /** Windows seen; the index of the next one. */
  #windows = 0;
  /** Of the next window to post, and while idle the first that is nobody's yet. */
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

  /** Takes the next window, of which `power` is the mean power before enhancement. Keeps a copy of the samples. */
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

  /** Ends what is open; the stream was so long. */
  finish(streamEndMs: number): void {
    this.#streamEndMs = streamEndMs;
    this.endUtterance();
  }

  /** Ends the open utterance, if any, without waiting for a pause. Speech that follows begins the next one. */
  endUtterance(): void {
    if (this.#utterance !== null) this.#end(this.#utterance, this.#speechEnd(this.#utterance));
  }

  get utterances(): number {
    return this.#utterances;
  }

  get isOpen(): boolean {
    return this.#utterance !== null;
  }

  /** Of the whole stream: windows of speech, the sum of their powers, and the power of the background. */
  totals(): { speechWindows: number; speechPower: number; backgroundPower: number | null } {
    return {
      speechWindows: this.#speechWindows,
      speechPower: this.#speechPower,
      backgroundPower: this.#allBackground.medianPower(FEWEST_BACKGROUND_WINDOWS),
    };
  }

  /** Speech so far, or before there was any a voice of usual loudness, over the recent background. */
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
    }
  }

  /** Tones are known for such only after a moment, in which they may have passed for speech. */
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

  /** Going back from what was the last. */
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

  /** Up to which window audio surely belongs to the utterance. */
  #postable(utterance: OpenUtterance): number {
    const untilPause = Math.min(this.#windows, utterance.lastSpeechWindow + 1 + POST_ROLL_WINDOWS);
    return Math.min(untilPause, utterance.startWindow + windowsIn(this.#rules.earliestCutMs));
  }

  #speechEnd(utterance: OpenUtterance): number {
    return utterance.lastSpeechWindow + 1;
  }

  /** Too long: ends in the pause of the last stretch, or where it is quietest, and goes on from there. */
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

  /** Counts out what is after the cut. */
  #withdraw(utterance: OpenUtterance, cutWindow: number): void {
    for (let window = cutWindow; window < this.#windows; window++) {
      if (!this.#ring.isSpeech(window)) continue;
      utterance.speechWindows -= 1;
      utterance.speechPower -= this.#ring.power(window);
    }
    utterance.lastSpeechWindow = Math.min(utterance.lastSpeechWindow, cutWindow - 1);
    this.#findLastSpeech(utterance);
  }

  /** `untilWindow` is the first that is not of the utterance's audio. */
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
    // A lorry that passes when all is said did not spoil it.
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

  /** Posts in blocks; what does not fill `fewestWindows` waits. */
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
