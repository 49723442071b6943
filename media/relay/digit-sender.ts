import { DTMF_GAP_MS, DTMF_PAUSES_MS } from '../dsp/dtmf-tones.ts';
import { FRAME_MS, FRAME_SAMPLES } from '../dsp/tones.ts';
import type { PlaybackEnd } from '../media-plane.ts';
import { eventOfDigit, type TelephoneEvent } from '../rtp/telephone-event.ts';

/**
 * Sends key presses to a leg as telephone events (RFC 4733 §2.5.1): an update every 20 ms while the key is held, then
 * the end three times. `w` waits half a second, `W` a second.
 */

const END_PACKETS = 3;
/** -10 dBm0, as RFC 4733 §2.5.2.3 suggests for senders. */
const VOLUME = 10;

interface DigitSenderOptions {
  /** `0`-`9`, `*`, `#`, `A`-`D`, and `w` and `W` for pauses. */
  digits: string;
  durationMs: number;
  /** Called once. */
  onEnded: (end: PlaybackEnd) => void;
}

export class DigitSender {
  /** The event to send as many times as `takeFrame` returned. */
  readonly event: TelephoneEvent = { event: 0, isEnd: false, volume: VOLUME, durationUnits: 0 };
  isFirst = false;
  readonly onEnded: (end: PlaybackEnd) => void;
  readonly #digits: string;
  readonly #keyFrames: number;
  #index = 0;
  #frame = 0;
  #pauseFrames = 0;

  constructor({ digits, durationMs, onEnded }: DigitSenderOptions) {
    this.#digits = digits;
    this.#keyFrames = Math.max(2, Math.round(durationMs / FRAME_MS));
    this.onEnded = onEnded;
  }

  get isSpent(): boolean {
    return this.#index >= this.#digits.length && this.#pauseFrames === 0;
  }

  /**
   * Advances by 20 ms. Returns the number of packets with `event` to send: none in a pause, three at the end of a key.
   */
  takeFrame(): number {
    if (this.#pauseFrames > 0) {
      this.#pauseFrames -= 1;
      return 0;
    }
    const digit = this.#digits[this.#index];
    if (digit === undefined) return 0;
    const pauseMs = DTMF_PAUSES_MS[digit];
    if (pauseMs !== undefined) {
      this.#index += 1;
      this.#pauseFrames = pauseMs / FRAME_MS - 1;
      return 0;
    }
    this.#frame += 1;
    this.isFirst = this.#frame === 1;
    this.event.event = eventOfDigit(digit);
    this.event.durationUnits = this.#frame * FRAME_SAMPLES;
    this.event.isEnd = this.#frame === this.#keyFrames;
    if (!this.event.isEnd) return 1;
    this.#frame = 0;
    this.#index += 1;
    this.#pauseFrames = DTMF_GAP_MS / FRAME_MS;
    return END_PACKETS;
  }
}
