/**
 * Parses JSON so that `JSON.stringify` returns numbers as written: 12345678901234567890, 1.10 and -0. A number that
 * JavaScript would change becomes a raw JSON value (TC39 JSON.parse source text access).
 */
export function parseExactJson(text: string): unknown {
  return EXACT.parse(text, (_key, value, { source }) =>
    typeof value === 'number' && JSON.stringify(value) !== source ? EXACT.rawJSON(source ?? '') : value,
  );
}

/** Converts a raw JSON value to the nearest JavaScript number; null for anything else. */
export function numberOfRawJson(value: unknown): number | null {
  return EXACT.isRawJSON(value) ? Number(value.rawJSON) : null;
}

const EXACT = JSON as unknown as ExactJson;

/** Members of the runtime's JSON that the ES2024 library types lack. */
interface ExactJson {
  parse(text: string, reviver: (key: string, value: unknown, context: { source?: string }) => unknown): unknown;
  rawJSON(text: string): unknown;
  isRawJSON(value: unknown): value is { rawJSON: string };
}
