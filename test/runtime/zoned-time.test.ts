import { describe, expect, it } from 'vitest';
import { dayAround, timeOfDay } from '../../runtime/zoned-time.ts';
import * as fc from '../properties.ts';

const at = (text: string) => new Date(text);
const dayOf = (text: string, zone: string) => {
  const { start, end } = dayAround(at(text), zone);
  return [start.toISOString(), end.toISOString()];
};

describe('zoned time', () => {
  it('ranges from 00:00 to 23:59 local time', () => {
    expect(timeOfDay(at('2026-01-31T03:30:00Z'), 'Asia/Kolkata')).toBe('09:00');
    expect(timeOfDay(at('2026-01-31T18:30:00Z'), 'Asia/Kolkata')).toBe('00:00');
    expect(timeOfDay(at('2026-01-31T18:29:59.999Z'), 'Asia/Kolkata')).toBe('23:59');
    expect(timeOfDay(at('2026-07-01T12:00:00Z'), 'Europe/London')).toBe('13:00');
  });

  it('starts a day at local midnight', () => {
    expect(dayOf('2026-01-31T03:30:00Z', 'UTC')).toEqual(['2026-01-31T00:00:00.000Z', '2026-02-01T00:00:00.000Z']);
    expect(dayOf('2026-01-31T18:29:59Z', 'Asia/Kolkata')).toEqual([
      '2026-01-30T18:30:00.000Z',
      '2026-01-31T18:30:00.000Z',
    ]);
    expect(dayOf('2026-12-31T23:00:00Z', 'Pacific/Auckland')).toEqual([
      '2026-12-31T11:00:00.000Z',
      '2027-01-01T11:00:00.000Z',
    ]);
  });

  it('contains days of 23 and 25 hours at clock changes', () => {
    expect(dayOf('2026-03-29T12:00:00Z', 'Europe/Berlin')).toEqual([
      '2026-03-28T23:00:00.000Z',
      '2026-03-29T22:00:00.000Z',
    ]);
    expect(dayOf('2026-10-25T12:00:00Z', 'Europe/Berlin')).toEqual([
      '2026-10-24T22:00:00.000Z',
      '2026-10-25T23:00:00.000Z',
    ]);
  });

  it.each([
    ['Africa/Cairo', '2026-04-24', '2026-04-23T22:00:00.000Z', '2026-04-24T21:00:00.000Z'],
    ['America/Santiago', '2026-09-06', '2026-09-06T04:00:00.000Z', '2026-09-07T03:00:00.000Z'],
    ['America/Havana', '2026-03-08', '2026-03-08T05:00:00.000Z', '2026-03-09T04:00:00.000Z'],
  ])('starts a day without midnight when the clock skips it (%s)', (zone, day, start, end) => {
    const before = new Date(Date.parse(start) - 1).toISOString();
    expect([timeOfDay(at(before), zone), timeOfDay(at(start), zone)]).toEqual(['23:59', '01:00']);
    expect(dayOf(`${day}T12:00:00Z`, zone)).toEqual([start, end]);
    expect(dayOf(before, zone)[1]).toBe(start);
  });

  it('lies within its day of 23 to 25 hours', () => {
    const zones = fc.constantFrom('UTC', 'Asia/Kolkata', 'Europe/London', 'America/New_York', 'Pacific/Chatham');
    const times = fc.integer({ min: Date.UTC(2020, 0), max: Date.UTC(2035, 0) });
    fc.assert(
      fc.property(zones, times, (zone, ms) => {
        const { start, end } = dayAround(new Date(ms), zone);
        expect(start.getTime()).toBeLessThanOrEqual(ms);
        expect(end.getTime()).toBeGreaterThan(ms);
        expect([23, 24, 25]).toContain((end.getTime() - start.getTime()) / 3_600_000);
        expect(timeOfDay(start, zone)).toBe('00:00');
      }),
    );
  });

  it('rejects an unknown zone', () => {
    expect(() => timeOfDay(at('2026-01-31T03:30:00Z'), 'Mars/Olympus')).toThrow(RangeError);
  });
});
