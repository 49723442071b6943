import { parse } from 'postgres-array';

/**
 * The array types that queries use, by their OIDs in pg_type.dat. Without them, the library (postgres 3.4.9) asks each
 * new connection's server for all types, which costs as much as the connection, and ends the process if the connection is
 * lost meanwhile.
 */
export const ARRAY_TYPES = {
  textArray: arrayType(1009, String),
  uuidArray: arrayType(2951, String),
  integerArray: arrayType(1007, Number),
  bigintArray: arrayType(1016, BigInt),
  realArray: arrayType(1021, Number),
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
  return `{${values.map((value) => (value === null ? 'NULL' : quoted(String(value)))).join()}}`;
}

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`;
}
