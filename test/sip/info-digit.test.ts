import { describe, expect, it } from 'vitest';
import { readInfo } from '../../sip/info-digit.ts';
import * as fc from '../properties.ts';

const relay = (body: string) => readInfo('application/dtmf-relay', body);
const digit = (name: string, durationMs = 160) => ({ kind: 'digit', digit: name, durationMs });

describe('INFO body', () => {
  it.each([...'0123456789ABCD*#'])('parses %s in both content types', (name) => {
    expect(relay(`Signal=${name}\r\nDuration=100\r\n`)).toEqual(digit(name, 100));
    expect(relay(`Signal= ${name.toLowerCase()} \nDuration = 100`)).toEqual(digit(name, 100));
    expect(readInfo('Application/DTMF; charset=utf-8', `${name}\r\n`)).toEqual(digit(name));
  });

  it('parses the lines of dtmf-relay in application/dtmf too', () => {
    expect(readInfo('application/dtmf', 'Signal=5\r\nDuration=250\r\n')).toEqual(digit('5', 250));
    expect(readInfo('application/dtmf', 'Signal= 11')).toEqual(digit('#'));
    expect(readInfo('application/dtmf', '=5')).toEqual({ kind: 'malformed' });
  });

  it('parses numeric keys and ignores hook flash', () => {
    expect(relay('Signal=10')).toEqual(digit('*'));
    expect(relay('Signal=11')).toEqual(digit('#'));
    for (const flash of ['16', '!']) expect(relay(`Signal=${flash}`)).toEqual({ kind: 'nothing' });
  });

  it('limits the duration', () => {
    for (const duration of ['99999', '9'.repeat(200)]) {
      expect(relay(`Signal=1\r\nDuration=${duration}`)).toEqual(digit('1', 10_000));
    }
  });

  it('accepts an empty INFO and rejects invalid ones', () => {
    expect(readInfo(undefined, '')).toEqual({ kind: 'nothing' });
    expect(readInfo(undefined, 'x')).toEqual({ kind: 'unsupported' });
    expect(readInfo('application/media_control+xml', '<x/>')).toEqual({ kind: 'unsupported' });
    for (const body of ['', 'Signal=', 'Signal=12', 'Signal=55', 'Duration=5', 'Signal=1\r\nDuration=-5', '5', '=5']) {
      expect(relay(body), body).toEqual({ kind: 'malformed' });
    }
    expect(relay('Signal=1\r\nSignal=2')).toEqual({ kind: 'malformed' });
    expect(relay('Signal=1\r\nDuration=1e9')).toEqual({ kind: 'malformed' });
    expect(relay(`Signal=1\r\n${'x=y'.padEnd(300)}`)).toEqual({ kind: 'malformed' });
    expect(readInfo('application/dtmf', undefined)).toEqual({ kind: 'malformed' });
  });

  it('never throws for any text, and yields digits with bounded durations only', () => {
    const lines = fc.array(fc.oneof(fc.string(), fc.constantFrom('Signal=', 'Duration=', '5', '\r\n', '9999')));
    fc.assert(
      fc.property(fc.constantFrom('application/dtmf', 'application/dtmf-relay'), lines, (type, parts) => {
        const read = readInfo(type, parts.join(''));
        if (read.kind !== 'digit') return;
        expect(read.digit).toMatch(/^[0-9A-D*#]$/);
        expect(read.durationMs).toBeLessThanOrEqual(10_000);
      }),
    );
  });
});
