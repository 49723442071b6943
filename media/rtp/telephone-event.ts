/** Telephone events: DTMF digits as RTP payload (RFC 4733 §2.3 and §3.2). */

export const TELEPHONE_EVENT_BYTES = 4;

const DIGITS = '0123456789*#ABCD';

export interface TelephoneEvent {
  /** 0-15 for DTMF; 16 is a hook flash, others are tones and signals. */
  event: number;
  isEnd: boolean;
  /** 0 to 63, meaning -dBm0. */
  volume: number;
  /** In timestamp units, of 125 us unless the clock is that of Opus. */
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

/**
 * Reports each key press once, at its End bit. A press has one RTP timestamp and three copies of its last packet (RFC
 * 4733 §2.5.1.4), so it is missed only if all are lost.
 */
export class KeyPressDetector {
  #timestamp = -1;
  #ssrc = -1;
  #isReported = true;

  /** Duration of the press in milliseconds if this packet completes one, else -1. */
  pressedForMs(ssrc: number, timestamp: number, event: TelephoneEvent): number {
    if (ssrc !== this.#ssrc || timestamp !== this.#timestamp) {
      // A late duplicate of an earlier press must not be reported again.
      const isOlder = ssrc === this.#ssrc && ((timestamp - this.#timestamp) | 0) < 0;
      if (isOlder && this.#timestamp !== -1) return -1;
      this.#ssrc = ssrc;
      this.#timestamp = timestamp;
      this.#isReported = false;
    }
    if (this.#isReported || !event.isEnd || event.event > 15) return -1;
    this.#isReported = true;
    return event.durationUnits / 8;
  }
}
