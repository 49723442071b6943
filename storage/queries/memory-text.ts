import { createHash } from 'node:crypto';
import { TandemError } from '../../machines/errors.ts';
import { numberOfRawJson } from '../exact-json.ts';

/** Makes a text storable in Postgres: removes NUL and lone surrogates, and normalises to NFC. */
export function storableText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '').normalize('NFC');
}

/** Limit of a memory's metadata, in bytes of JSON. */
export const METADATA_MAX_BYTES = 8_192;

export function fitsMetadata(metadata: unknown): boolean {
  return metadata === undefined || Buffer.byteLength(JSON.stringify(metadata)) <= METADATA_MAX_BYTES;
}

/** Maximum nesting of JSON. */
const DEEPEST = 64;

/**
 * Applies `storableText` to every text and key of a JSON value. Raw JSON numbers become ordinary ones, because filters
 * compare with those.
 * @throws TandemError `VALIDATION_FAILED` if it is nested too deeply
 */
export function storableJson(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return storableText(value);
  if (typeof value !== 'object' || value === null) return value;
  const number = numberOfRawJson(value);
  if (number !== null) return number;
  if (depth === DEEPEST) {
    throw new TandemError('VALIDATION_FAILED', `Metadata is nested deeper than ${DEEPEST} levels.`);
  }
  if (Array.isArray(value)) return value.map((item) => storableJson(item, depth + 1));
  // `fromEntries` treats a key such as `__proto__` like any other.
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [storableText(key), storableJson(item, depth + 1)]),
  );
}

/** SHA-256 of the text as stored, so that equal texts have equal hashes. */
export function contentHashOf(content: string): Buffer {
  return createHash('sha256').update(storableText(content)).digest();
}
