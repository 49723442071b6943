/**
 * Parses JSON so that `JSON.stringify` returns numbers as written: 12345678901234567890, 1.10 and -0. A number that
 * JavaScript would change becomes a raw JSON value (TC39 JSON.parse source text access).
 */
export function parseExactJson(text: string): unknown {
  return JSON.parse(text, (_key, value, { source }) =>
    typeof value === 'number' && JSON.stringify(value) !== source ? JSON.rawJSON(source ?? '') : value,
  );
}

/** Converts a raw JSON value to the nearest JavaScript number; null for anything else. */
export function numberOfRawJson(value: unknown): number | null {
  return JSON.isRawJSON(value) ? Number(value.rawJSON) : null;
}
