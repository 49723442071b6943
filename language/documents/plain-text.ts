/**
 * Decodes UTF-8, UTF-16 with or without a byte order mark, or windows-1252, which also covers ISO 8859-1. Null if the
 * bytes are not text.
 */
export function decodeText(bytes: Buffer): string | null {
  const encoding = encodingByMark(bytes) ?? utf16WithoutMark(bytes);
  if (encoding !== null) return textIn(bytes, encoding);
  const text = bytes.at(-1) === DOS_END ? bytes.subarray(0, -1) : bytes;
  return textIn(text, 'utf-8') ?? (WIDE_CONTROL.test(text.toString('latin1')) ? null : textIn(text, 'windows-1252'));
}

/** Programs of DOS write it behind the text. */
const DOS_END = 0x1a;

/** Removes characters that are not text or that databases reject. */
export function cleanText(text: string): string {
  return (
    text
      .toWellFormed()
      .replace(/\r\n?|\u2028|\u2029/g, '\n')
      .replace(/\f|\v/g, '\n\n')
      .replace(CONTROL, '')
      .split('\n')
      // Not a regular expression: at a million blanks it would take quadratic time.
      .map((line) => line.trimEnd())
      .join('\n')
      .replace(/\n{3,}/g, '\n\n')
      .replace(/^\n+/, '')
      .trimEnd()
      .normalize('NFC')
  );
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const CONTROL = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\ufffe\uffff\ufeff]/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for.
const BINARY = /[\u0000-\u0008\u000b\u000e-\u001a\u001c-\u001f\ufffe\uffff]/;
/** Bytes that windows-1252 leaves undefined. */
const WIDE_CONTROL = /[\x81\x8d\x8f\x90\x9d]/;

function encodingByMark(bytes: Buffer): string | null {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le';
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be';
  return null;
}

/** In UTF-16 with mostly Latin letters, every other byte is zero. */
function utf16WithoutMark(bytes: Buffer): string | null {
  if (bytes.length < 4 || bytes.length % 2 !== 0) return null;
  const zeros = [0, 0];
  const looked = Math.min(bytes.length, 4096);
  for (let at = 0; at < looked; at += 1) if (bytes[at] === 0) zeros[at % 2]! += 1;
  const [even = 0, odd = 0] = zeros;
  const many = looked * 0.35;
  if (odd > many && even === 0) return 'utf-16le';
  if (even > many && odd === 0) return 'utf-16be';
  return null;
}

function textIn(bytes: Buffer, encoding: string): string | null {
  try {
    const text = new TextDecoder(encoding, { fatal: true }).decode(bytes);
    return BINARY.test(text) ? null : text;
  } catch {
    return null;
  }
}
