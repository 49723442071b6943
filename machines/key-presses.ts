import type { LegId, MediaEvent } from './events.ts';

/**
 * Sources of the key presses of each leg. A phone without telephone events may send a key both as INFO and as a tone.
 * The first INFO of a leg disables its tones. It is a repetition if its digit equals the last reported tone.
 */
export type KeyPresses = Readonly<Partial<Record<LegId, PressSources>>>;

interface PressSources {
  sendsInfo: boolean;
  /** A tone and an INFO had the same digit in succession. A tone alone may be speech that imitates one. */
  sendsBoth: boolean;
  last: Pick<PressedKey, 'digit' | 'by'>;
}

export type KeyPress = Extract<MediaEvent<LegId>, { type: 'dtmf.pressed' }>;
export type PressedKey = Pick<KeyPress, 'leg' | 'digit' | 'by'>;

/** Whether the press was already reported from the other source. */
export function isRepeatedPress(presses: KeyPresses, { leg, digit, by }: PressedKey): boolean {
  const known = presses[leg];
  if (known === undefined || by === undefined) return false;
  return by === 'tone' ? known.sendsInfo : !known.sendsInfo && known.last.digit === digit;
}

/** Whether the other parties get the press only from us: its leg sends neither a telephone event nor a tone. */
export function isSilentPress(presses: KeyPresses, { leg, by }: PressedKey): boolean {
  return by === 'info' && presses[leg]?.sendsBoth !== true;
}

export function withPress(presses: KeyPresses, { leg, digit, by }: PressedKey): KeyPresses {
  if (by === undefined) return presses;
  const { sendsInfo = false, sendsBoth = false, last } = presses[leg] ?? {};
  const isBoth = last !== undefined && last.by !== by && last.digit === digit;
  const sources = { sendsInfo: sendsInfo || by === 'info', sendsBoth: sendsBoth || isBoth, last: { digit, by } };
  return { ...presses, [leg]: sources };
}
