import type { LegId, MediaEvent } from './events.ts';

/**
 * How the legs of a call bring their keys. A phone without telephone events may send a key as INFO and as a tone as well:
 * the first INFO of a leg ends its tones, and repeats the tone that was reported last, if both name the same digit.
 */
export type KeyPresses = Readonly<Partial<Record<LegId, { sendsInfo: boolean; lastTone: string | null }>>>;

export type KeyPress = Extract<MediaEvent<LegId>, { type: 'dtmf.pressed' }>;

/** Whether the press was reported already, by the other means. */
export function isRepeatedPress(presses: KeyPresses, { leg, digit, by }: KeyPress): boolean {
  const known = presses[leg];
  if (known === undefined || by === undefined) return false;
  return by === 'tone' ? known.sendsInfo : !known.sendsInfo && known.lastTone === digit;
}

export function withPress(presses: KeyPresses, { leg, digit, by }: KeyPress): KeyPresses {
  if (by === undefined) return presses;
  const sendsInfo = by === 'info' || (presses[leg]?.sendsInfo ?? false);
  return { ...presses, [leg]: { sendsInfo, lastTone: sendsInfo ? null : digit } };
}
