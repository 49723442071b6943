/** Members of `JSON` that Node 24 has and TypeScript's ES2024 library lacks (TC39 JSON.parse source text access). */
interface JSON {
  /** `source` is the text of a primitive value; undefined for arrays and objects. */
  parse(text: string, reviver: (key: string, value: unknown, context: { source?: string }) => unknown): unknown;
  rawJSON(text: string): RawJson;
  isRawJSON(value: unknown): value is RawJson;
}

/** A number whose text `JSON.stringify` returns unchanged. */
interface RawJson {
  readonly rawJSON: string;
}
