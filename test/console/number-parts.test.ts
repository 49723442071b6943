import { describe, expect, it } from 'vitest';
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
