import { clamp } from '../../runtime/clamp.ts';
import type { Prosody } from './script.ts';

/**
 * Parses values of the SSML 1.1 `prosody` element. Each returns the change relative to the surrounding prosody, or null
 * for an invalid value.
 */

export function rateFactor(value: string): number | null {
  const name = RATES.get(value);
  if (name !== undefined) return name;
  const percent = PERCENT.exec(value);
  if (percent !== null) return percent[1] === '' ? Number(percent[2]) / 100 : 1 + signed(percent) / 100;
  return /^\d{1,3}(\.\d{1,6})?$/.test(value) ? Number(value) : null;
}

export function pitchSemitones(value: string): number | null {
  const name = PITCHES.get(value);
  if (name !== undefined) return name;
  const semitones = SEMITONES.exec(value);
  if (semitones !== null) return signed(semitones);
  const percent = PERCENT.exec(value);
  if (percent === null) return null;
  const factor = percent[1] === '' ? Number(percent[2]) / 100 : 1 + signed(percent) / 100;
  return factor > 0 ? 12 * Math.log2(factor) : null;
}

export function volumeDb(value: string): number | null {
  const name = VOLUMES.get(value);
  if (name !== undefined) return name;
  const decibels = DECIBELS.exec(value);
  if (decibels !== null) return signed(decibels);
  const percent = PERCENT.exec(value);
  if (percent === null) return null;
  const factor = percent[1] === '' ? Number(percent[2]) / 100 : 1 + signed(percent) / 100;
  return factor >= 0 ? 20 * Math.log10(factor) : null;
}

export const RATE_FORMS = 'x-slow, slow, medium, fast, x-fast, default, 80%, +20% or 1.2';
export const PITCH_FORMS = 'x-low, low, medium, high, x-high, default, +2st or -10%; not Hz, since voices differ';
export const VOLUME_FORMS = 'silent, x-soft, soft, medium, loud, x-loud, default, +6dB or -50%';

/** Combines nested prosody: rates multiply, semitones and decibels add up, within limits. */
export function nested(outer: Prosody, inner: Partial<Prosody>): Prosody {
  return {
    rate: clamp(outer.rate * (inner.rate ?? 1), 0.25, 4),
    pitchSemitones: clamp(outer.pitchSemitones + (inner.pitchSemitones ?? 0), -24, 24),
    volumeDb: loudness(outer.volumeDb + (inner.volumeDb ?? 0)),
  };
}

/** SSML `emphasis`. Null for an unknown level. */
export function emphasis(level: string): Partial<Prosody> | null {
  return EMPHASES.get(level) ?? null;
}

export const EMPHASIS_LEVELS = 'strong, moderate, none or reduced';

function signed([, sign, number]: RegExpExecArray): number {
  return sign === '-' ? -Number(number) : Number(number);
}

/** Silence stays silence, whatever is nested inside. */
function loudness(db: number): number {
  return db === -Infinity ? db : clamp(db, -60, 12);
}

const PERCENT = /^([+-]?)(\d{1,4}(?:\.\d{1,6})?)%$/;
const SEMITONES = /^([+-]?)(\d{1,3}(?:\.\d{1,6})?)st$/i;
const DECIBELS = /^([+-]?)(\d{1,3}(?:\.\d{1,6})?)dB$/i;

const RATES = new Map([
  ['x-slow', 0.5],
  ['slow', 0.75],
  ['medium', 1],
  ['default', 1],
  ['fast', 1.25],
  ['x-fast', 1.75],
]);
const PITCHES = new Map([
  ['x-low', -6],
  ['low', -3],
  ['medium', 0],
  ['default', 0],
  ['high', 3],
  ['x-high', 6],
]);
const VOLUMES = new Map([
  ['silent', -Infinity],
  ['x-soft', -12],
  ['soft', -6],
  ['medium', 0],
  ['default', 0],
  ['loud', 4],
  ['x-loud', 8],
]);
const EMPHASES = new Map<string, Partial<Prosody>>([
  ['strong', { rate: 0.85, pitchSemitones: 2, volumeDb: 4 }],
  ['moderate', { rate: 0.92, pitchSemitones: 1, volumeDb: 2 }],
  ['none', {}],
  ['reduced', { rate: 1.05, pitchSemitones: -1, volumeDb: -3 }],
]);
