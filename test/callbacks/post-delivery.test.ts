import { expect, test } from 'vitest';
import { parseRetryAfter } from '../../actors/callbacks/post-delivery.ts';
import * as fc from '../properties.ts';

const NOW_MS = Date.parse('2026-03-01T12:00:00.500Z');

test.each([
  ['120', 120_000],
  [' 7 ', 7_000],
  ['0', 0],
  ['Sun, 01 Mar 2026 12:01:00 GMT', 59_500],
  ['Sun, 01 Mar 2026 11:59:00 GMT', null],
  ['Sun, 99 Mar 2026 12:01:00 GMT', null],
  ['2026-03-01T12:01:00Z', null],
  ['-5', null],
  ['1.5', null],
  ['1e9', null],
  ['99999999999999999999', null],
  ['soon', null],
  ['', null],
  [null, null],
])('Retry-After %j means %j ms', (value, expected) => {
  expect(parseRetryAfter(value, NOW_MS)).toBe(expected);
});

test('any Retry-After gives a non-negative delay or null', () => {
  fc.assert(
    fc.property(fc.string(), (value) => {
      const ms = parseRetryAfter(value, NOW_MS);
      expect(ms === null || (Number.isFinite(ms) && ms >= 0)).toBe(true);
    }),
  );
});
