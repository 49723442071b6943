/**
 * JSON whose numbers keep the digits they were written with: 12345678901234567890, 1.10 and -0 come out of
 * `JSON.stringify` as they went in, where a JavaScript number would not bring them back. Such a number is a raw JSON
 * value (TC39 JSON.parse source text access); all others are plain numbers.
 */
export function parseExactJson(text: string): unknown {
  return EXACT.parse(text, (_key, value, { source }) =>
    typeof value === 'number' && JSON.stringify(value) !== source ? EXACT.rawJSON(source ?? '') : value,
  );
}

/** The number behind a raw JSON value, as near as JavaScript has it; null for anything else. */
export function numberOfRawJson(value: unknown): number | null {
  return EXACT.isRawJSON(value) ? Number(value.rawJSON) : null;
}

const EXACT = JSON as unknown as ExactJson;

/** What the runtime's JSON has beyond the ES2024 library types. */
interface ExactJson {
  parse(text: string, reviver: (key: string, value: unknown, context: { source?: string }) => unknown): unknown;
  rawJSON(text: string): unknown;
  isRawJSON(value: unknown): value is { rawJSON: string };
}
