import { getCountries, getCountryCallingCode } from 'libphonenumber-js/max';
import { describe, expect, it } from 'vitest';
import { parseByteRange } from '../../http/byte-range.ts';
import { parseJsonBody } from '../../http/json-body.ts';
import { normaliseCallable, normaliseE164, normaliseIndianMobile } from '../../http/schemas/phone-number.ts';
import { parseTime } from '../../http/schemas/time.ts';
import { TandemError } from '../../machines/errors.ts';
import { nanoToUsd, usdToNano } from '../../runtime/money.ts';
import * as fc from '../properties.ts';

describe('normaliseIndianMobile', () => {
  const mobile = fc
    .tuple(fc.constantFrom('6', '7', '8', '9'), fc.stringMatching(/^[0-9]{9}$/))
    .map(([first, rest]) => first + rest);
  const separator = fc.constantFrom('', ' ', '-', '.', '(', ')', '[', ']', ' - ');

  it('maps every accepted form, with any separators, to one number', () => {
    fc.assert(
      fc.property(
        mobile,
        fc.constantFrom('+91', '91', ''),
        fc.array(separator, { minLength: 14 }),
        (digits, prefix, gaps) => {
          const written = [...prefix, ...digits].map((character, i) => `${gaps[i] ?? ''}${character}`).join('');
          expect(normaliseIndianMobile(written)).toBe(`+91${digits}`);
        },
      ),
    );
  });

  it('returns only mobile numbers for any text', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        const number = normaliseIndianMobile(text);
        if (number !== null) expect(number).toMatch(/^\+91[6-9][0-9]{9}$/);
      }),
    );
  });

  it('keeps ten digits that start with 91', () => {
    expect(normaliseIndianMobile('9198765432')).toBe('+919198765432');
    expect(normaliseIndianMobile('919198765432')).toBe('+919198765432');
  });

  it.each(['0919810000001', '00919810000001', '++919810000001', '91+9810000001', '+9109810000001', '9810000001x'])(
    'rejects %s',
    (text) => expect(normaliseIndianMobile(text)).toBeNull(),
  );
});

const mobileNumber = fc
  .tuple(fc.constantFrom('+91', '91', '0', ''), fc.stringMatching(/^[5-9][0-9]{8,10}$/))
  .map(([prefix, digits]) => prefix + digits);

describe('normaliseCallable', () => {
  it('equals normaliseIndianMobile by default', () => {
    fc.assert(
      fc.property(
        fc.oneof(fc.string({ unit: 'binary' }), fc.stringMatching(/^\+?[0-9 ]{0,16}$/), mobileNumber),
        (text) => {
          expect(normaliseCallable(text, ['IN'])).toBe(normaliseIndianMobile(text));
        },
      ),
    );
  });

  it('accepts the national notation of the first country, or a plus sign', () => {
    expect(normaliseCallable('(415) 555-0100', ['US', 'GB'])).toBe('+14155550100');
    expect(normaliseCallable('+44 20 7946 0958', ['US', 'GB'])).toBe('+442079460958');
    expect(normaliseCallable('020 7946 0958', ['GB', 'US'])).toBe('+442079460958');
    expect(normaliseCallable('020 7946 0958', ['US', 'GB'])).toBeNull();
    expect(normaliseCallable('98123 45678', ['IN', 'US'])).toBe('+919812345678');
    expect(normaliseCallable('4155550100', 'any')).toBeNull();
    expect(normaliseCallable('+14155550100', 'any')).toBe('+14155550100');
  });

  it('accepts only listed countries, even with a shared calling code', () => {
    expect(normaliseCallable('+14165550100', ['US'])).toBeNull();
    expect(normaliseCallable('+18765550100', ['US'])).toBeNull();
    expect(normaliseCallable('+18765550100', ['US', 'JM'])).toBe('+18765550100');
    expect(normaliseCallable('+442079460958', ['IN', 'US'])).toBeNull();
    // Satellite phones have a calling code without a country.
    expect(normaliseCallable('+881631555555', ['US', 'GB'])).toBeNull();
    expect(normaliseCallable('+881631555555', 'any')).toBe('+881631555555');
  });

  it('accepts only mobile numbers in a listed India', () => {
    expect(normaliseCallable('+911140000001', ['US', 'IN'])).toBeNull();
    expect(normaliseCallable('+919812345678', ['US', 'IN'])).toBe('+919812345678');
    expect(normaliseCallable('0919810000001', ['IN', 'US'])).toBeNull();
    expect(normaliseCallable('+911140000001', 'any')).toBe('+911140000001');
  });

  it('rejects emergency and short numbers in every country', () => {
    const short = Array.from({ length: 1_000 }, (_, number) => String(number));
    const padded = short.slice(0, 100).map((number) => number.padStart(3, '0'));
    // One assertion per country, because 500,000 of them take longer than what they check.
    for (const country of getCountries()) {
      const code = getCountryCallingCode(country);
      const accepted = [...short, ...padded, '1098', '1930']
        .flatMap((number) => [number, `+${code}${number}`])
        .filter((number) => normaliseCallable(number, [country]) !== null);
      expect(accepted, country).toEqual([]);
    }
  });

  it.each([
    '+1415555010x',
    '+14155550100;ext=5',
    'tel:+14155550100',
    '+1415555０100',
    '1-800-FLOWERS',
    '++14155550100',
    '',
  ])('rejects %j', (text) => {
    expect(normaliseCallable(text, ['US'])).toBeNull();
    expect(normaliseCallable(text, 'any')).toBeNull();
  });
});

describe('normaliseE164', () => {
  it('accepts landlines and other countries', () => {
    expect(normaliseE164('+91 (22) 4000-0001')).toBe('+912240000001');
    expect(normaliseE164('+14155550100')).toBe('+14155550100');
  });

  it.each(['911140000001', '+0911140000', '+1234567890123456', '+12', '+', '', null, 919810000001, ['+911140000001']])(
    'rejects %j',
    (input) => expect(normaliseE164(input)).toBeNull(),
  );
});

describe('money conversion', () => {
  it('converts USD to nano-dollars and back without loss', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 4_000_000_000_000_000n }), (nano) => {
        expect(usdToNano(nanoToUsd(nano))).toBe(nano);
      }),
    );
  });

  it.each([
    [0, 0n],
    [0.1, 100_000_000n],
    [0.0001, 100_000n],
    [1e-9, 1n],
    [1.5e-8, 15n],
    [19.99, 19_990_000_000n],
    [1e21, 10n ** 30n],
  ])('converts %d USD to %s nano-dollars', (usd, nano) => expect(usdToNano(usd)).toBe(nano));

  it.each([1e-10, 0.0000000001, -1, Number.NaN, Number.POSITIVE_INFINITY, 0.12345678901])(
    'rejects %d USD, a fraction of a nano-dollar',
    (usd) => expect(usdToNano(usd)).toBeNull(),
  );
});

describe('parseByteRange', () => {
  it.each<[string | undefined, ReturnType<typeof parseByteRange>]>([
    [undefined, 'whole'],
    ['bytes=0-0', { start: 0, end: 0 }],
    ['bytes=10-19', { start: 10, end: 19 }],
    ['bytes=90-', { start: 90, end: 99 }],
    ['bytes=90-1000', { start: 90, end: 99 }],
    ['bytes=-10', { start: 90, end: 99 }],
    ['bytes=-1000', { start: 0, end: 99 }],
    ['bytes=100-', 'unsatisfiable'],
    ['bytes=-0', 'unsatisfiable'],
    ['bytes=20-10', 'whole'],
    ['bytes=0-1,5-6', 'whole'],
    ['bytes=-', 'whole'],
    ['bytes=a-b', 'whole'],
    ['items=0-1', 'whole'],
    ['bytes=99999999999999999999999-', 'unsatisfiable'],
  ])('parses %s for 100 bytes', (header, expected) => expect(parseByteRange(header, 100)).toEqual(expected));

  it('never exceeds the resource', () => {
    fc.assert(
      fc.property(fc.string(), fc.nat(1000), (text, size) => {
        const range = parseByteRange(`bytes=${text}`, size);
        if (typeof range === 'string') return;
        expect(range.start).toBeGreaterThanOrEqual(0);
        expect(range.end).toBeLessThan(size);
        expect(range.start).toBeLessThanOrEqual(range.end);
      }),
    );
  });
});

describe('parseJsonBody', () => {
  it('parses any output of JSON.stringify', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        expect(parseJsonBody(Buffer.from(JSON.stringify(value)))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it('ignores brackets in strings when it counts the depth', () => {
    const text = JSON.stringify({ k: '[{"\\'.repeat(2000) });
    expect(parseJsonBody(Buffer.from(text))).toEqual(JSON.parse(text));
  });

  it.each([
    ['nesting beyond any use', '['.repeat(30_000)],
    ['balanced nesting beyond any use', `${'{"a":'.repeat(2000)}1${'}'.repeat(2000)}`],
    ['a half', '{"a":'],
    ['single quotes', "{'a':1}"],
    ['NaN', 'NaN'],
  ])('rejects %s', (_name, text) => {
    expect(() => parseJsonBody(Buffer.from(text))).toThrow(TandemError);
  });

  it('rejects bytes that are not UTF-8', () => {
    expect(() => parseJsonBody(Buffer.from([0x22, 0xff, 0x22]))).toThrow(/UTF-8/);
  });

  it('accepts an empty body', () => expect(parseJsonBody(Buffer.alloc(0))).toBeUndefined());
});

describe('parseTime', () => {
  it.each([
    ['2026-01-31', '2026-01-31T00:00:00.000Z'],
    ['2026-01-31T09:30:00Z', '2026-01-31T09:30:00.000Z'],
    ['2026-01-31T09:30:00.5+05:30', '2026-01-31T04:00:00.500Z'],
    ['2026-01-31T09:30 05:30', '2026-01-31T04:00:00.000Z'],
    ['0001-01-01T00:00:00Z', '0001-01-01T00:00:00.000Z'],
    ['9999-12-31T23:59:59.9999999Z', '9999-12-31T23:59:59.999Z'],
  ])('parses %s as %s', (text, iso) => expect(parseTime(text)?.toISOString()).toBe(iso));

  it.each([
    'yesterday',
    '2026',
    '2026-13-01',
    '2026-02-30',
    '2026-02-29T10:00:00Z',
    '2026-04-31T23:30:00+05:30',
    '0000-01-01',
    '0001-01-01T00:00:00+01:00',
    '9999-12-31T23:59:59-01:00',
    '2026-01-31T25:00:00Z',
    '2026-01-31 09:30',
    '-271821-04-20',
    '1769850000',
    '',
  ])('rejects %s', (text) => expect(parseTime(text)).toBeNull());
});
