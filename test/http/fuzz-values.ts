import { isObject } from '../../runtime/is-object.ts';
import * as fc from '../properties.ts';
import type { Schema } from './openapi-document.ts';

const NASTY_TEXT = [
  '',
  ' ',
  '\0',
  'a\0b',
  '\ud800',
  'a\udfffb',
  '\u202eevil',
  '\ufeff',
  'é'.normalize('NFD'),
  '%',
  '%00',
  '%0d%0aSet-Cookie: a=b',
  'a\r\nX-Injected: 1',
  'sip:x@y\r\nVia: z',
  "' or 1=1; drop table calls; --",
  '1; select pg_sleep(1)',
  '"><script>alert(1)</script>',
  '=cmd|calc',
  `$${'{jndi:ldap://x}'}`,
  `{{7*7}}#${'{7*7}'}`,
  '../../../etc/passwd',
  '..%2f..%2f',
  '__proto__',
  'constructor',
  '-1',
  '0',
  '1e999',
  '0x10',
  '9007199254740993',
  '99999999999999999999999999',
  'NaN',
  'null',
  'true',
  '2026-02-30',
  '0000-01-01',
  '+919810000001',
  '९८१००००००१',
  '00000000-0000-0000-0000-000000000000',
  'http://127.0.0.1/',
  'https://[::1]/',
  'javascript:alert(1)',
  '😀'.repeat(500),
  'x'.repeat(2000),
  'x'.repeat(20_000),
];
const WRONG_TYPES = [
  null,
  true,
  false,
  0,
  -0,
  -1,
  1.5,
  1e300,
  Number.MAX_SAFE_INTEGER,
  2 ** 31,
  '5',
  [],
  [[]],
  {},
  [{}],
];

export const nastyText: fc.Arbitrary<string> = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(...NASTY_TEXT) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 40 }) },
);

/** Mostly the example with some fields changed, removed or added; sometimes any value. */
export function bodyFor(schema: Schema, example: unknown): fc.Arbitrary<unknown> {
  const properties = Object.entries(schema.properties ?? {});
  const fields = isObject(example) ? example : {};
  const changes = fc.array(
    fc.oneof(
      ...properties.map(([name, property]) => fc.tuple(fc.constant(name), valueFor(property))),
      fc.tuple(fc.constantFrom(...properties.map(([name]) => name), 'x'), fc.constant(LEFT_OUT)),
      fc.tuple(fc.constantFrom('__proto__', 'constructor', 'workspace_id', 'extra'), anything()),
    ),
    { maxLength: 3 },
  );
  const changed = changes.map((pairs) => {
    const entries = new Map<string, unknown>(Object.entries(fields));
    for (const [name, value] of pairs) {
      if (value === LEFT_OUT) entries.delete(name);
      else entries.set(name, value);
    }
    // `fromEntries` defines fields, even one named `__proto__`.
    return Object.fromEntries(entries);
  });
  return fc.oneof({ weight: 8, arbitrary: changed }, { weight: 1, arbitrary: anything() });
}

const LEFT_OUT = Symbol('left out');

/** Values at, next to and far beyond the limits of the schema. */
export function valueFor(schema: Schema): fc.Arbitrary<unknown> {
  const branches = (schema.anyOf ?? []).map(valueFor);
  return fc.oneof(
    { weight: 2, arbitrary: fc.constantFrom(...knownValues(schema), ...boundaries(schema), '') },
    { weight: 2, arbitrary: anything() },
    ...branches.map((arbitrary) => ({ weight: 2, arbitrary })),
  );
}

/** Defaults, constants, enum members and examples of the schema. */
export function knownValues(schema: Schema): unknown[] {
  const { examples = [], enum: choices = [], anyOf = [] } = schema;
  const named = [schema.default, schema.const].filter((value) => value !== undefined);
  const items = schema.items === undefined ? [] : knownValues(schema.items).map((item) => [item]);
  return [...examples, ...choices, ...named, ...items, ...anyOf.flatMap(knownValues)];
}

function boundaries({ minimum, maximum, minLength, maxLength, minItems, maxItems, items }: Schema): unknown[] {
  const numbers = [minimum, maximum].filter((limit) => limit !== undefined).flatMap((n) => [n - 1, n, n + 1, n + 0.5]);
  const around = (limit: number | undefined) => (limit === undefined ? [] : [limit - 1, limit, limit + 1]);
  const lengths = [...around(minLength), ...around(maxLength)].filter((length) => length >= 0);
  const texts = lengths.flatMap((length) => ['a'.repeat(length), '😀'.repeat(length), '७'.repeat(length)]);
  const item = items === undefined ? undefined : knownValues(items)[0];
  const sizes = [...around(minItems), ...around(maxItems)].filter((size) => size >= 0);
  return [...numbers, ...texts, ...sizes.map((size) => Array.from({ length: size }, () => item ?? 'a'))];
}

function anything(): fc.Arbitrary<unknown> {
  return fc.oneof(fc.constantFrom(...WRONG_TYPES), nastyText, fc.jsonValue());
}
