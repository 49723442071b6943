/**
 * Wall-clock time in an IANA time zone, such as `Asia/Kolkata`. Every function throws RangeError for an unknown zone.
 */

/** `HH:MM`, from 00:00 to 23:59. */
export function timeOfDay(at: Date, timeZone: string): string {
  const { hour, minute } = wallClock(at, timeZone);
  return `${String(hour).padStart(2, '0')}:${String(minute).padStart(2, '0')}`;
}

/** Start of the day in the zone and of the next one. */
export function dayAround(at: Date, timeZone: string): { start: Date; end: Date } {
  const { year, month, day } = wallClock(at, timeZone);
  return { start: midnight(year, month, day), end: midnight(year, month, day + 1) };

  function midnight(y: number, m: number, d: number): Date {
    const asUtc = Date.UTC(y, m - 1, d);
    const guess = new Date(asUtc - offsetMs(new Date(asUtc), timeZone));
    // The offset may differ between the two, around daylight saving changes.
    const start = new Date(asUtc - offsetMs(guess, timeZone));
    // Some zones skip midnight. Then the day starts when the clock changes, which may be an hour later.
    return wallClock(start, timeZone).day === new Date(asUtc).getUTCDate() ? start : guess;
  }
}

/** Offset of the zone from UTC. */
function offsetMs(at: Date, timeZone: string): number {
  const { year, month, day, hour, minute, second } = wallClock(at, timeZone);
  return Date.UTC(year, month - 1, day, hour, minute, second) - Math.floor(at.getTime() / 1000) * 1000;
}

function wallClock(at: Date, timeZone: string) {
  const digits = '2-digit' as const;
  const format = new Intl.DateTimeFormat('en-GB', {
    ...{ timeZone, hourCycle: 'h23', year: 'numeric', month: digits, day: digits },
    ...{ hour: digits, minute: digits, second: digits },
  });
  const parts = Object.fromEntries(format.formatToParts(at).map(({ type, value }) => [type, Number(value)]));
  const { year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0 } = parts;
  return { year, month, day, hour, minute, second };
}
