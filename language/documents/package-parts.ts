import { crc32, inflateRawSync } from 'node:zlib';
import { type Entry, fromBufferPromise } from 'yauzl';
import { TandemError } from '../../machines/errors.ts';
import { READING_LIMITS } from './reading-limits.ts';

/** The contents of a ZIP archive by name. Parts are inflated on demand. */
export interface PackageParts {
  names: ReadonlySet<string>;
  /**
   * Inflates a part and counts the bytes. Sizes declared by the archive are used only to reject it.
   * @throws TandemError `DOCUMENT_TOO_LARGE`, `DOCUMENT_NOT_READABLE`
   */
  take(name: string): Buffer | null;
}

/** @throws TandemError `DOCUMENT_NOT_READABLE`, `DOCUMENT_ENCRYPTED`, `DOCUMENT_TOO_LARGE` */
export async function openPackage(bytes: Buffer): Promise<PackageParts> {
  const entries = await entriesOf(bytes);
  const stretches = [...entries.values()].map((entry) => stretchOf(bytes, entry)).sort((a, b) => a.from - b.from);
  for (const [index, { from }] of stretches.entries()) {
    // Overlapping entries are how a zip bomb grows without limit.
    if (from < (stretches[index - 1]?.to ?? 0)) throw tooLarge('Entries of the archive lie over each other.');
  }
  let left: number = READING_LIMITS.packageBytes;

  return {
    names: new Set(entries.keys()),
    take(name) {
      const entry = entries.get(name);
      if (entry === undefined) return null;
      const part = inflate(bytes, entry, left);
      left -= part.length;
      return part;
    },
  };
}

async function entriesOf(bytes: Buffer): Promise<Map<string, Entry>> {
  const entries = new Map<string, Entry>();
  const lowerCase = new Set<string>();
  // Sizes are checked during inflation instead.
  const archive = await fromBufferPromise(bytes, { lazyEntries: true, validateEntrySizes: false }).catch(notReadable);
  try {
    if (archive.entryCount > READING_LIMITS.packageEntries) throw tooManyEntries();
    for await (const entry of archive.eachEntry()) {
      const { fileName } = entry;
      if (entry.isEncrypted()) {
        throw new TandemError('DOCUMENT_ENCRYPTED', 'The archive is password-protected. Save it without a password.');
      }
      if (entries.size >= READING_LIMITS.packageEntries) throw tooManyEntries();
      if (fileName.endsWith('/')) continue;
      // Programs differ in which duplicate they read. Names are unique, ignoring case ([ECMA-376] part 2, 7.3.6).
      if (lowerCase.has(fileName.toLowerCase())) throw damaged('Two entries of the archive have the same name.');
      lowerCase.add(fileName.toLowerCase());
      entries.set(fileName, entry);
    }
  } catch (error) {
    return notReadable(error);
  } finally {
    archive.close();
  }
  return entries;
}

const LOCAL_HEADER = Buffer.from('PK\x03\x04', 'latin1');
const LOCAL_HEADER_BYTES = 30;

/** The byte range of an entry, including its local header. */
function stretchOf(bytes: Buffer, { relativeOffsetOfLocalHeader: from, compressedSize }: Entry) {
  const header = bytes.subarray(from, from + LOCAL_HEADER_BYTES);
  if (header.length < LOCAL_HEADER_BYTES || !header.subarray(0, 4).equals(LOCAL_HEADER)) {
    throw damaged('An entry of the archive is not where it should be.');
  }
  const data = from + LOCAL_HEADER_BYTES + header.readUInt16LE(26) + header.readUInt16LE(28);
  const to = data + compressedSize;
  if (to > bytes.length) throw damaged('The archive breaks off.');
  return { from, data, to };
}

function inflate(bytes: Buffer, entry: Entry, left: number): Buffer {
  const { data, to } = stretchOf(bytes, entry);
  const packed = bytes.subarray(data, to);
  const { packageRatio, ratioFromBytes } = READING_LIMITS;
  const most = Math.min(left, Math.max(ratioFromBytes, packed.length * packageRatio));
  const part = unpack(packed, entry.compressionMethod, most);
  if (part.length > most) throw tooLarge('The document is too large once it is unpacked.');
  if (part.length !== entry.uncompressedSize || crc32(part) !== entry.crc32) throw damaged('The document is damaged.');
  return part;
}

function unpack(packed: Buffer, method: number, most: number): Buffer {
  if (method === STORED) return packed;
  if (method !== DEFLATED) throw damaged('The archive is packed in a way that Office documents are not.');
  try {
    return inflateRawSync(packed, { maxOutputLength: Math.max(1, most) });
  } catch (error) {
    const isMore = (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE';
    throw isMore ? tooLarge('The document is too large once it is unpacked.') : damaged('The document is damaged.');
  }
}

const STORED = 0;
const DEFLATED = 8;

function tooManyEntries(): TandemError {
  return tooLarge(`The archive has more than ${READING_LIMITS.packageEntries} entries.`);
}

function tooLarge(message: string): TandemError {
  return new TandemError('DOCUMENT_TOO_LARGE', message);
}

function damaged(message: string): TandemError {
  return new TandemError('DOCUMENT_NOT_READABLE', message);
}

function notReadable(cause: unknown): never {
  if (cause instanceof TandemError) throw cause;
  throw new TandemError('DOCUMENT_NOT_READABLE', 'The archive is damaged or truncated.', { cause });
}
