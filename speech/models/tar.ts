import { ModelError } from './model-error.ts';

export interface TarEntry {
  /** As in the archive, unchecked. */
  name: string;
  kind: 'file' | 'folder' | 'other';
  bytes: number;
  /** Content of a file. Unread content is skipped. */
  content: AsyncGenerator<Buffer>;
}

/**
 * Reads a tar stream (POSIX.1-2001, with long names of GNU tar and pax). Finish each entry before requesting the next.
 * @throws ModelError `BAD_ARCHIVE`
 */
export async function* readTar(source: AsyncIterable<Buffer>): AsyncGenerator<TarEntry> {
  const bytes = new ByteStream(source);
  try {
    yield* readEntries(bytes);
  } finally {
    await bytes.close();
  }
}

async function* readEntries(bytes: ByteStream): AsyncGenerator<TarEntry> {
  let longName: string | null = null;
  let longSize: number | null = null;
  while (true) {
    const header = await bytes.read(BLOCK_BYTES);
    if (header === null || header.every((byte) => byte === 0)) return;
    requireChecksum(header);
    const type = String.fromCharCode(header[156]!);
    const size: number = longSize ?? sizeOf(header);
    if (type === 'L' || type === 'x' || type === 'g') {
      if (size > MOST_HEADER_BYTES) throw new ModelError('BAD_ARCHIVE', 'the archive has a header that is too long');
      const content = await bytes.require(size);
      await bytes.skip(paddingOf(size));
      if (type === 'L') longName = textOf(content);
      if (type === 'x') ({ name: longName = longName, size: longSize = null } = parsePax(content));
      continue;
    }
    const name = longName ?? nameOf(header);
    longName = null;
    longSize = null;
    const kind = type === '0' || type === '\0' ? 'file' : type === '5' ? 'folder' : 'other';
    const before = bytes.position;
    yield { name, kind, bytes: size, content: bytes.take(size) };
    await bytes.skip(size - (bytes.position - before) + paddingOf(size));
  }
}

const BLOCK_BYTES = 512;
const MOST_HEADER_BYTES = 65_536;

/** Up to the first zero. */
function textOf(field: Buffer): string {
  const end = field.indexOf(0);
  return field.toString('utf8', 0, end === -1 ? field.length : end);
}

function nameOf(header: Buffer): string {
  const name = textOf(header.subarray(0, 100));
  const isPosix = header.toString('latin1', 257, 263) === 'ustar\0';
  const prefix = isPosix ? textOf(header.subarray(345, 500)) : '';
  return prefix === '' ? name : `${prefix}/${name}`;
}

/** Octal digits; sizes from 8 GB are binary. */
function sizeOf(header: Buffer): number {
  const field = header.subarray(124, 136);
  const size = (field[0]! & 0x80) === 0 ? Number.parseInt(textOf(field).trim() || '0', 8) : field.readUIntBE(6, 6);
  if (!Number.isSafeInteger(size) || size < 0) throw new ModelError('BAD_ARCHIVE', 'the archive has a malformed size');
  return size;
}

function requireChecksum(header: Buffer): void {
  const stored = Number.parseInt(textOf(header.subarray(148, 156)).trim(), 8);
  let sum = 0;
  for (const [at, byte] of header.entries()) sum += at >= 148 && at < 156 ? 0x20 : byte;
  if (sum !== stored) throw new ModelError('BAD_ARCHIVE', 'it is not a tar archive, or it is damaged');
}

/** Lines of `<length> <key>=<value>\n`. */
function parsePax(content: Buffer): { name?: string; size?: number } {
  const found: { name?: string; size?: number } = {};
  for (let at = 0; at < content.length; ) {
    const length = Number.parseInt(content.toString('latin1', at, at + 20), 10);
    if (!(length > 0)) break;
    const [, key, value] = /^\d+ ([^=]*)=([\s\S]*)\n$/.exec(content.toString('utf8', at, at + length)) ?? [];
    if (key === 'path' && value !== undefined) found.name = value;
    if (key === 'size' && value !== undefined && /^\d{1,15}$/.test(value)) found.size = Number(value);
    at += length;
  }
  return found;
}

function paddingOf(size: number): number {
  return (BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES;
}

class ByteStream {
  readonly #source: AsyncIterator<Buffer>;
  #buffer: Buffer = Buffer.alloc(0);
  position = 0;

  constructor(source: AsyncIterable<Buffer>) {
    this.#source = source[Symbol.asyncIterator]();
  }

  async close(): Promise<void> {
    await this.#source.return?.();
  }

  /** Null at the end of the stream. */
  async read(length: number): Promise<Buffer | null> {
    const parts: Buffer[] = [];
    for await (const part of this.#pieces(length)) parts.push(part);
    const bytes = Buffer.concat(parts);
    if (bytes.length === length) return bytes;
    if (bytes.length === 0) return null;
    throw new ModelError('BAD_ARCHIVE', 'the archive is cut off');
  }

  async require(length: number): Promise<Buffer> {
    const bytes = await this.read(length);
    if (bytes === null && length > 0) throw new ModelError('BAD_ARCHIVE', 'the archive is cut off');
    return bytes ?? Buffer.alloc(0);
  }

  async *take(length: number): AsyncGenerator<Buffer> {
    let taken = 0;
    for await (const part of this.#pieces(length)) {
      taken += part.length;
      yield part;
    }
    if (taken < length) throw new ModelError('BAD_ARCHIVE', 'the archive is cut off');
  }

  async skip(length: number): Promise<void> {
    for await (const _ of this.take(length));
  }

  /** Yields `length` bytes as they arrive, or fewer at the end of the stream. */
  async *#pieces(length: number): AsyncGenerator<Buffer> {
    for (let left = length; left > 0; ) {
      if (this.#buffer.length === 0) {
        const next = await this.#source.next();
        if (next.done) return;
        this.#buffer = next.value;
      }
      const piece = this.#buffer.subarray(0, left);
      this.#buffer = this.#buffer.subarray(piece.length);
      this.position += piece.length;
      left -= piece.length;
      yield piece;
    }
  }
}
