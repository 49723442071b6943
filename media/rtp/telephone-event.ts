import { timestampDelta } from './receiver-statistics.ts';

/** Telephone events: DTMF digits as RTP payload (RFC 4733 §2.3 and §3.2). */

export const TELEPHONE_EVENT_BYTES = 4;

const DIGITS = '0123456789*#ABCD';

export interface TelephoneEvent {
  /** 0-15 for DTMF; 16 is a hook flash, others are tones and signals. */
  event: number;
  isEnd: boolean;
  /** 0 to 63, meaning -dBm0. */
  volume: number;
  /** In timestamp units, of 125 us unless the clock is that of Opus. At most 0xffff. */
  durationUnits: number;
}

/** Parses the event at `offset` into `event`; false if it is shorter than four bytes. */
export function parseTelephoneEvent(bytes: Uint8Array, offset: number, length: number, event: TelephoneEvent): boolean {
  if (length < TELEPHONE_EVENT_BYTES || offset + TELEPHONE_EVENT_BYTES > bytes.length) return false;
  event.event = bytes[offset]!;
  event.isEnd = (bytes[offset + 1]! & 0x80) !== 0;
  event.volume = bytes[offset + 1]! & 0x3f;
  event.durationUnits = (bytes[offset + 2]! << 8) | bytes[offset + 3]!;
  return true;
}

export function emptyTelephoneEvent(): TelephoneEvent {
  return { event: 0, isEnd: false, volume: 0, durationUnits: 0 };
}

export function telephoneEventPayload(event: TelephoneEvent): Uint8Array {
  const bytes = new Uint8Array(TELEPHONE_EVENT_BYTES);
  writeTelephoneEvent(bytes, 0, event);
  return bytes;
}

/** Writes the four payload bytes of an event at `offset`. */
export function writeTelephoneEvent(bytes: Uint8Array, offset: number, event: TelephoneEvent): void {
  const duration = Math.min(0xffff, event.durationUnits);
  bytes[offset] = event.event;
  bytes[offset + 1] = (event.isEnd ? 0x80 : 0) | (event.volume & 0x3f);
  bytes[offset + 2] = duration >> 8;
  bytes[offset + 3] = duration & 0xff;
}

/** Scales the duration of the event at `offset` for another clock. */
export function scaleEventDuration(bytes: Uint8Array, offset: number, factor: number): void {
  if (factor === 1) return;
  const duration = Math.min(0xffff, Math.round(((bytes[offset + 2]! << 8) | bytes[offset + 3]!) * factor));
  bytes[offset + 2] = duration >> 8;
  bytes[offset + 3] = duration & 0xff;
}

/** `0`-`9`, `*`, `#`, `A`-`D`; null if the event is not a digit. */
export function digitOfEvent(event: number): string | null {
  return DIGITS[event] ?? null;
}

/** 0-15; -1 if not a digit. */
export function eventOfDigit(digit: string): number {
  return digit.length === 1 ? DIGITS.indexOf(digit.toUpperCase()) : -1;
}

/** Packets of a press follow each other within 50 ms (RFC 4733 §2.5.1.2); a few may be lost. */
const ENDED_AFTER_MS = 200;
/** Shorter tones are not digits (ITU-T Q.24). */
const SHORTEST_WITHOUT_END_MS = 40;
/** A longer press goes on as another event with a later timestamp, the next segment (RFC 4733 §2.5.1.3). */
const SEGMENT_TICKS = 0xffff;
/** Senders may start the next segment a packet early. */
const SHORTEST_SEGMENT_TICKS = 0xf000;
/** Longer than a segment and any delay. An earlier timestamp is not late: the peer restarted its timestamps. */
const MOST_LATE_MS = 10_000;

/**
 * Reports each key press once, at its End bit. Peers send three copies of it (RFC 4733 §2.5.1.4). If all are lost, the
 * next press or 200 ms without packets report it.
 */
export class KeyPressDetector {
  readonly #onPress: (digit: string, durationMs: number) => void;
  #ssrc = -1;
  #timestamp = 0;
  #event = 0;
  /** Duration of the current segment. */
  #durationMs = 0;
  #earlierSegmentsMs = 0;
  #receivedAtMs = 0;
  #isPressed = false;
  #isReported = false;

  constructor(onPress: (digit: string, durationMs: number) => void) {
    this.#onPress = onPress;
  }

  /** Takes one packet, in any order. Allocates nothing. `clockHz` is that of timestamp and duration. */
  add(ssrc: number, timestamp: number, event: TelephoneEvent, clockHz: number, nowMs: number): void {
    if (ssrc !== this.#ssrc || timestamp !== this.#timestamp) {
      const ahead = timestampDelta(timestamp, this.#timestamp);
      // A late packet of an earlier press.
      if (ssrc === this.#ssrc && ahead < 0 && (-ahead * 1000) / clockHz <= MOST_LATE_MS) return;
      const isNextSegment = ahead >= SHORTEST_SEGMENT_TICKS && ahead <= SEGMENT_TICKS;
      const isHeld = this.#isPressed && nowMs - this.#receivedAtMs <= ENDED_AFTER_MS;
      if (isHeld && ssrc === this.#ssrc && event.event === this.#event && isNextSegment) {
        this.#earlierSegmentsMs += (ahead * 1000) / clockHz;
      } else {
        this.#reportUnended();
        this.#isPressed = digitOfEvent(event.event) !== null;
        this.#isReported = false;
        this.#earlierSegmentsMs = 0;
      }
      this.#ssrc = ssrc;
      this.#timestamp = timestamp;
      this.#event = event.event;
      this.#durationMs = 0;
    }
    if (!this.#isPressed) return;
    this.#durationMs = Math.max(this.#durationMs, (event.durationUnits * 1000) / clockHz);
    this.#receivedAtMs = nowMs;
    if (!event.isEnd) return;
    this.#report();
    this.#isPressed = false;
  }

  /** Reports a press that no packets follow. Call every few hundred milliseconds. */
  judge(nowMs: number): void {
    if (nowMs - this.#receivedAtMs > ENDED_AFTER_MS) this.#reportUnended();
  }

  /** Reports a press whose End packets are lost. */
  #reportUnended(): void {
    if (this.#isPressed && this.#earlierSegmentsMs + this.#durationMs >= SHORTEST_WITHOUT_END_MS) this.#report();
  }

  /** Packets that arrive after a gap do not report the press again. */
  #report(): void {
    if (this.#isReported) return;
    this.#isReported = true;
    this.#onPress(digitOfEvent(this.#event)!, this.#earlierSegmentsMs + this.#durationMs);
  }
}
