import type { LegId, MediaEvent } from './events.ts';

/**
 * Sources of the key presses of each leg. A phone without telephone events may send a key both as INFO and as a tone.
 * The first INFO of a leg disables its tones. It is a repetition if its digit equals the last reported tone.
 */
export type KeyPresses = Readonly<Partial<Record<LegId, { sendsInfo: boolean; lastTone: string | null }>>>;

export type KeyPress = Extract<MediaEvent<LegId>, { type: 'dtmf.pressed' }>;
export type PressedKey = Pick<KeyPress, 'leg' | 'digit' | 'by'>;

/** Whether the press was already reported from the other source. */
export function isRepeatedPress(presses: KeyPresses, { leg, digit, by }: PressedKey): boolean {
  const known = presses[leg];
  if (known === undefined || by === undefined) return false;
  return by === 'tone' ? known.sendsInfo : !known.sendsInfo && known.lastTone === digit;
}

export function withPress(presses: KeyPresses, { leg, digit, by }: PressedKey): KeyPresses {
  if (by === undefined) return presses;
  const sendsInfo = by === 'info' || (presses[leg]?.sendsInfo ?? false);
  return { ...presses, [leg]: { sendsInfo, lastTone: sendsInfo ? null : digit } };
}
