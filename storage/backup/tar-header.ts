/** Tar headers (POSIX.1-1988, ustar) of regular files. */

export const BLOCK_BYTES = 512;
const MODE = '0000600';
const OWNER = '0000000';
const CHECKSUM_AT = 148;

export interface TarEntry {
  name: string;
  sizeBytes: number;
}

/** Padding of a file's last block, in bytes. */
export function paddingOf(sizeBytes: number): number {
  return (BLOCK_BYTES - (sizeBytes % BLOCK_BYTES)) % BLOCK_BYTES;
}

/** @throws RangeError for a name that does not fit: over 100 bytes after and 155 bytes before a slash */
export function encodeHeader({ name, sizeBytes }: TarEntry, modifiedAt: Date): Buffer {
  const header = Buffer.alloc(BLOCK_BYTES);
  const [prefix, base] = split(name);
  header.write(base, 0, 'latin1');
  header.write(MODE, 100, 'latin1');
  header.write(OWNER, 108, 'latin1');
  header.write(OWNER, 116, 'latin1');
  header.write(sizeBytes.toString(8).padStart(11, '0'), 124, 'latin1');
  header.write(
    Math.floor(modifiedAt.getTime() / 1000)
      .toString(8)
      .padStart(11, '0'),
    136,
    'latin1',
  );
  header.write('0', 156, 'latin1');
  header.write('ustar\u000000', 257, 'latin1');
  header.write(prefix, 345, 'latin1');
  header.write(`${checksumOf(header).toString(8).padStart(6, '0')}\u0000 `, CHECKSUM_AT, 'latin1');
  return header;
}

export function decodeHeader(header: Buffer): TarEntry | null {
  const stored = Number.parseInt(textAt(header, CHECKSUM_AT, 8), 8);
  if (header.length !== BLOCK_BYTES || stored !== checksumOf(header) || textAt(header, 257, 5) !== 'ustar') return null;
  const sizeBytes = Number.parseInt(textAt(header, 124, 12), 8);
  if (!Number.isSafeInteger(sizeBytes) || sizeBytes < 0) return null;
  const [prefix, base] = [textAt(header, 345, 155), textAt(header, 0, 100)];
  return { name: prefix === '' ? base : `${prefix}/${base}`, sizeBytes };
}

function split(name: string): [prefix: string, base: string] {
  if (name.length <= 100) return ['', name];
  for (let slash = name.indexOf('/'); slash !== -1; slash = name.indexOf('/', slash + 1)) {
    if (slash <= 155 && name.length - slash - 1 <= 100) return [name.slice(0, slash), name.slice(slash + 1)];
  }
  throw new RangeError(`${name} is too long for the header of a tar archive`);
}

/** Counts the checksum field as spaces. */
function checksumOf(header: Buffer): number {
  let sum = 8 * 32;
  for (const [index, byte] of header.entries()) {
    if (index < CHECKSUM_AT || index >= CHECKSUM_AT + 8) sum += byte;
  }
  return sum;
}

function textAt(header: Buffer, start: number, bytes: number): string {
  const field = header.toString('latin1', start, start + bytes);
  const end = field.indexOf('\u0000');
  return end === -1 ? field : field.slice(0, end);
}
