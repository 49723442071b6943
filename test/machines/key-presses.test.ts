import { describe, expect, it } from 'vitest';
import {
  isRepeatedPress,
  isSilentPress,
  type KeyPress,
  type KeyPresses,
  withPress,
} from '../../machines/key-presses.ts';

type Means = 'tone' | 'info' | 'event';

/** Reported digits for presses such as `tone 5`. */
function reported(...presses: readonly `${Means} ${string}`[]): string {
  return digitsOf(presses).reported;
}

/** Digits for presses such as `tone 5`, and those that other parties get only from us. */
function digitsOf(presses: readonly `${Means} ${string}`[]) {
  let known: KeyPresses = {};
  let digits = '';
  let silent = '';
  for (const each of presses) {
    const [by, digit] = each.split(' ') as [Means, string];
    const press: KeyPress = { type: 'dtmf.pressed', leg: 'agent', digit, durationMs: 100 };
    if (by !== 'event') press.by = by;
    if (!isRepeatedPress(known, press)) {
      digits += digit;
      if (isSilentPress(known, press)) silent += digit;
    }
    known = withPress(known, press);
  }
  return { reported: digits, silent };
}

describe('key presses of a leg', () => {
  it('count individually over a single channel', () => {
    expect(reported('tone 5', 'tone 5', 'tone 1')).toBe('551');
    expect(reported('info 5', 'info 5', 'info 1')).toBe('551');
    expect(reported('event 5', 'event 5')).toBe('55');
  });

  it('count once when a phone sends tones and INFO, in either order', () => {
    expect(reported('tone 5', 'info 5', 'tone 5', 'info 5', 'info 1', 'tone 1')).toBe('551');
    expect(reported('info 5', 'tone 5', 'info 5', 'tone 5')).toBe('55');
  });

  it('count an INFO with another digit than the last tone, which speech may imitate', () => {
    expect(reported('tone D', 'info 5', 'info 5')).toBe('D55');
  });

  it('count telephone events after any earlier press', () => {
    expect(reported('info 5', 'tone 5', 'event 5', 'event 5')).toBe('555');
  });

  it('stay silent by INFO, unless the phone sends tones, too', () => {
    expect(digitsOf(['info 5', 'info 6', 'event 7']).silent).toBe('56');
    expect(digitsOf(['tone 5', 'info 5', 'tone 6', 'info 6']).silent).toBe('');
    expect(digitsOf(['info 5', 'tone 5', 'info 6', 'tone 6']).silent).toBe('5');
  });

  it('stay silent by INFO after speech that imitates a tone', () => {
    expect(digitsOf(['tone D', 'info 5', 'tone 3', 'info 6']).silent).toBe('56');
  });

  it('count separately for each leg', () => {
    const info: KeyPress = { type: 'dtmf.pressed', leg: 'agent', digit: '5', durationMs: 100, by: 'info' };
    const known = withPress({}, info);
    expect(isRepeatedPress(known, { ...info, by: 'tone' })).toBe(true);
    expect(isRepeatedPress(known, { ...info, by: 'tone', leg: 'customer' })).toBe(false);
  });
});
