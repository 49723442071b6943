import { tone } from './tones.ts';

/** Key presses as tones (ITU-T Q.23), for peers without telephone events. 8 kHz, linear, 16 bit. */

const LOW_HZ = [697, 770, 852, 941] as const;
const HIGH_HZ = [1209, 1336, 1477, 1633] as const;
const KEYS = ['123A', '456B', '789C', '*0#D'] as const;
/** Level of each tone; together at most -7 dBm0, the limit of ITU-T Q.23. */
const LEVEL_DBFS = -7;
/** Silence after a key. ITU-T Q.24 requires receivers to detect pauses of 65 ms. */
export const DTMF_GAP_MS = 80;
export const DTMF_PAUSES_MS: Readonly<Record<string, number>> = { w: 500, W: 1000 };

/** `digits` contains `0`-`9`, `*`, `#`, `A`-`D`, and pauses of half a second (`w`) and a second (`W`). */
export function dtmfTones(digits: string, durationMs: number): Int16Array<ArrayBuffer> {
  const parts = [...digits].flatMap((digit) => {
    const pauseMs = DTMF_PAUSES_MS[digit];
    if (pauseMs !== undefined) return [silence(pauseMs)];
    return [tone({ frequenciesHz: frequenciesOf(digit), durationMs, levelDbfs: LEVEL_DBFS }), silence(DTMF_GAP_MS)];
  });
  const samples = new Int16Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    samples.set(part, at);
    at += part.length;
  }
  return samples;
}

/** How long it takes to press these digits. */
export function pressesMs(digits: string, durationMs: number): number {
  return [...digits].reduce((sum, digit) => sum + (DTMF_PAUSES_MS[digit] ?? durationMs + DTMF_GAP_MS), 0);
}

function frequenciesOf(digit: string): [number, number] {
  const row = KEYS.findIndex((keys) => keys.includes(digit.toUpperCase()));
  if (row < 0) throw new RangeError('not a digit of a telephone');
  return [LOW_HZ[row]!, HIGH_HZ[KEYS[row]!.indexOf(digit.toUpperCase())]!];
}

function silence(ms: number): Int16Array {
  return new Int16Array(ms * 8);
}
