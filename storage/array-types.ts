import { parse } from 'postgres-array';

/**
 * Array types by their OIDs in pg_type.dat. Without them, the library (postgres 3.4.9) asks each new connection's server
 * for all types, which costs as much as the connection, and ends the process if the connection is lost meanwhile.
 */
export const ARRAY_TYPES = {
  ...{ textArray: arrayType(1009, String), varcharArray: arrayType(1015, String), nameArray: arrayType(1003, String) },
  ...{ uuidArray: arrayType(2951, String), booleanArray: arrayType(1000, (text) => text === 't') },
  ...{
    smallintArray: arrayType(1005, Number),
    integerArray: arrayType(1007, Number),
    oidArray: arrayType(1028, Number),
  },
  ...{ realArray: arrayType(1021, Number), doubleArray: arrayType(1022, Number) },
  ...{ bigintArray: arrayType(1016, BigInt), numericArray: arrayType(1231, String) },
  ...{ timestamptzArray: arrayType(1185, (text) => new Date(text)) },
};

function arrayType<Element>(oid: number, parseElement: (text: string) => Element) {
  return {
    to: oid,
    from: [oid],
    /** A value may also be an array's text. */
    serialize: (values: readonly unknown[] | string) => (typeof values === 'string' ? values : literalOf(values)),
    parse: (text: string) => parse(text, parseElement),
  };
}

function literalOf(values: readonly unknown[]): string {
  return `{${values.map(elementOf).join()}}`;
}

function elementOf(value: unknown): string {
  if (value === null) return 'NULL';
  if (Array.isArray(value)) return literalOf(value);
  return quoted(value instanceof Date ? value.toISOString() : String(value));
}

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}
