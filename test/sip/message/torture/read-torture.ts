import { readFileSync } from 'node:fs';

export interface TortureMessage {
  name: string;
  section: string;
  /** Response status, or whether the message is delivered or dropped. */
  expected: number | 'delivered' | 'dropped';
  bytes: Buffer;
}

/**
 * Messages of RFC 4475 and RFC 5118, each after a line `== name section expected`. Lines end in CRLF on the wire.
 * `<hex>` and `<repeat>` are the notation of RFC 4475 section 2.
 */
export function readTorture(file: 'rfc4475.txt' | 'rfc5118.txt'): TortureMessage[] {
  const text = readFileSync(new URL(file, import.meta.url), 'utf8');
  return text
    .split(/^== /m)
    .slice(1)
    .map((part) => {
      const end = part.indexOf('\n');
      const [name = '', section = '', expected = ''] = part.slice(0, end).split(' ');
      return {
        name,
        section,
        expected: expected === 'delivered' || expected === 'dropped' ? expected : Number(expected),
        bytes: bytesOf(part.slice(end + 1)),
      };
    });
}

function bytesOf(text: string): Buffer {
  const repeated = text
    .replaceAll('\n', '\r\n')
    .replace(/<repeat count=(\d+)>(.*?)<\/repeat>/g, (_whole, count, piece) => piece.repeat(Number(count)));
  const pieces = repeated.split(/<hex>([0-9A-F]*)<\/hex>/);
  return Buffer.concat(pieces.map((piece, at) => Buffer.from(piece, at % 2 === 0 ? 'utf8' : 'hex')));
}
