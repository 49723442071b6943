import { createHash } from 'node:crypto';
import { TandemError } from '../../machines/errors.ts';

/** A text as Postgres can keep it, whatever it was: without NUL and lone surrogates, and composed the usual way. */
export function storableText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '').normalize('NFC');
}

/** Limit of a memory's metadata, in bytes of JSON. */
export const METADATA_MAX_BYTES = 8_192;

export function fitsMetadata(metadata: unknown): boolean {
  return metadata === undefined || Buffer.byteLength(JSON.stringify(metadata)) <= METADATA_MAX_BYTES;
}

/** What JSON may nest. */
const DEEPEST = 64;

/**
 * The same for every text, and every key, deep inside a JSON value.
 * @throws TandemError `VALIDATION_FAILED` when it nests deeper than anybody means it
 */
export function storableJson(value: unknown, depth = 0): unknown {
  if (typeof value === 'string') return storableText(value);
  if (typeof value !== 'object' || value === null) return value;
  if (depth === DEEPEST) {
    throw new TandemError('VALIDATION_FAILED', `Metadata is nested deeper than ${DEEPEST} levels.`);
  }
  if (Array.isArray(value)) return value.map((item) => storableJson(item, depth + 1));
  // A key such as `__proto__` is a key like any other.
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [storableText(key), storableJson(item, depth + 1)]),
  );
}

/** SHA-256 of a text as it is stored: what says the same has the same. */
export function contentHashOf(content: string): Buffer {
  return createHash('sha256').update(storableText(content)).digest();
}
