import { describe, expect, it } from 'vitest';
import { reachabilityText } from '../../console/numbers/reachability.ts';
import { bodyOf } from '../../console/numbers/rules-fields.ts';

describe('the request that saves calling rules', () => {
  it('names each blocked prefix once and without spaces', () => {
    expect(bodyOf({ blocked: ['+44 ', ' +91,+44', '+1'] })).toEqual({ blocked_prefixes: ['+44', '+91', '+1'] });
  });

  it('leaves out fields without a change', () => {
    expect(bodyOf({})).toEqual({});
    expect(bodyOf({ cap: '', hours: null })).toEqual({ daily_spend_cap_usd: null, calling_hours: null });
  });
});

describe('the words for the health of a trunk', () => {
  it('promise no check of a trunk whose health checks are off', () => {
    const health = { mode: 'none' } as const;
    const unknown = { state: 'unknown', reason: 'not_checked' } as const;
    expect(reachabilityText({ health, reachability: unknown }).name).toBe('Not checked');
    expect(reachabilityText({ health, reachability: { state: 'up', reason: 'call_answered' } })).toEqual({
      name: 'Up',
      reason: 'The carrier answered a call.',
    });
    expect(reachabilityText({ health: { mode: 'options' }, reachability: unknown }).name).toBe('Not known yet');
  });
});
