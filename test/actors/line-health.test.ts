import { describe, expect, it } from 'vitest';
import { LineHealth } from '../../actors/line-health.ts';

const UNKNOWN = { state: 'unknown', reason: 'not_checked', answersOptions: null } as const;

describe('LineHealth', () => {
  it('becomes up with the first response to any request, and keeps that reason', () => {
    for (const by of ['options', 'call', 'register'] as const) {
      const line = new LineHealth(UNKNOWN);
      expect(line.answered(by)).toBe(true);
      expect(line.current).toMatchObject({ state: 'up', reason: `${by}_answered` });
      line.answered('call');
      expect(line.current.reason).toBe(`${by}_answered`);
    }
  });

  it('becomes down after two missed OPTIONS of a carrier that answered them before', () => {
    const line = new LineHealth(UNKNOWN);
    line.answered('options');
    expect(line.missed('options', 'no_response')).toBe(false);
    expect(line.missed('options', 'transport_error')).toBe(true);
    expect(line.current).toEqual({ state: 'down', reason: 'transport_error', answersOptions: true });
    expect(line.missed('options', 'no_response')).toBe(false);
  });

  it('restarts the count of misses after a response', () => {
    const line = new LineHealth(UNKNOWN);
    line.answered('options');
    line.missed('options', 'no_response');
    line.answered('options');
    line.missed('options', 'no_response');
    expect(line.current.state).toBe('up');
  });

  it('ignores missed OPTIONS of a carrier that never answered them', () => {
    const line = new LineHealth(UNKNOWN);
    for (let miss = 0; miss < 5; miss += 1) line.missed('options', 'no_response');
    expect(line.current).toEqual({ state: 'unknown', reason: 'options_not_answered', answersOptions: null });
  });

  it('counts an unreachable address against every carrier', () => {
    const line = new LineHealth(UNKNOWN);
    line.missed('options', 'transport_error');
    line.missed('options', 'transport_error');
    expect(line.current).toMatchObject({ state: 'down', reason: 'transport_error' });
  });

  it('marks a carrier as ignoring OPTIONS when it answers a call, until it answers OPTIONS', () => {
    const line = new LineHealth(UNKNOWN);
    line.answered('options');
    line.missed('options', 'no_response');
    expect(line.answered('call')).toBe(true);
    expect(line.current.answersOptions).toBe(false);
    for (let miss = 0; miss < 5; miss += 1) line.missed('options', 'no_response');
    expect(line.current.state).toBe('up');
    expect(line.answered('options')).toBe(true);
    expect(line.current.answersOptions).toBe(true);
  });

  it('becomes down by calls alone when no OPTIONS are sent', () => {
    const line = new LineHealth(UNKNOWN);
    line.missed('call', 'no_response');
    expect(line.current.state).toBe('unknown');
    line.missed('call', 'no_response');
    expect(line.current.state).toBe('down');
  });

  it('stays up despite missed calls while OPTIONS are answered', () => {
    const line = new LineHealth(UNKNOWN);
    line.answered('options');
    for (let miss = 0; miss < 5; miss += 1) line.missed('call', 'no_response');
    expect(line.current.state).toBe('up');
  });
});
