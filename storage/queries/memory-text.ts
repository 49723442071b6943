import { createHash } from 'node:crypto';

/** A text as Postgres can keep it, whatever it was: without NUL and lone surrogates, and composed the usual way. */
export function storableText(text: string): string {
  return text.toWellFormed().replaceAll('\0', '').normalize('NFC');
}

/** The same for every text deep inside a value. */
export function storableJson(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value), (_, inner) => {
    if (typeof inner === 'string') return storableText(inner);
    if (typeof inner !== 'object' || inner === null || Array.isArray(inner)) return inner;
    // A key such as `__proto__` is a key like any other.
    return Object.fromEntries(Object.entries(inner).map(([key, item]) => [storableText(key), item]));
  });
}

/** SHA-256 of a text as it is stored: what says the same has the same. */
export function contentHashOf(content: string): Buffer {
  return createHash('sha256').update(storableText(content)).digest();
}
