import { type FileHandle, open } from 'node:fs/promises';

/** The file is not a complete ONNX model. */
export class OnnxFormatError extends Error {
  override readonly name = 'OnnxFormatError';
}

/**
 * Reads the `metadata_props` of an ONNX file's ModelProto (onnx.proto). Skips the graph with its weights, so it is fast
 * for models of any size. Detects truncated files.
 * @throws OnnxFormatError
 */
export async function readOnnxMetadata(path: string): Promise<Record<string, string>> {
  await using file = await open(path);
  const { size } = await file.stat();
  if ((await readBytes(file, 0, LFS_POINTER.length)).toString('latin1') === LFS_POINTER) {
    throw new OnnxFormatError('a Git LFS pointer in place of the file. Run git lfs pull, or download the file');
  }
  const metadata: Record<string, string> = Object.create(null);
  let hasGraph = false;
  let offset = 0;
  for (let fields = 0; offset < size; fields++) {
    if (fields > MOST_FIELDS) throw new OnnxFormatError('too many fields');
    const { field, bodyOffset, bodyBytes } = await readField(file, offset);
    offset = bodyOffset + bodyBytes;
    if (offset > size) throw new OnnxFormatError('the file is cut off');
    hasGraph ||= field === GRAPH_FIELD;
    if (field !== METADATA_FIELD || bodyBytes > MOST_ENTRY_BYTES) continue;
    const [key, value] = parseEntry(await readBytes(file, bodyOffset, bodyBytes));
    metadata[key] = value;
  }
  if (!hasGraph) throw new OnnxFormatError('no graph in it');
  return metadata;
}

const LFS_POINTER = 'version https://git-lfs.github.com/spec/';
const GRAPH_FIELD = 7;
const METADATA_FIELD = 14;
const MOST_FIELDS = 10_000;
/** Some models store whole vocabularies in an entry; the ones needed here are short. */
const MOST_ENTRY_BYTES = 16_384;
/** A tag and a length, at most ten bytes each. */
const MOST_HEAD_BYTES = 20;

interface Field {
  field: number;
  bodyOffset: number;
  bodyBytes: number;
}

async function readField(file: FileHandle, offset: number): Promise<Field> {
  const head = await readBytes(file, offset, MOST_HEAD_BYTES);
  const tag = readVarint(head, 0);
  const field = Math.floor(tag.value / 8);
  const wireType = tag.value % 8;
  const afterTag = offset + tag.bytes;
  if (field === 0) throw new OnnxFormatError('not a protobuf message');
  if (wireType === 0) return { field, bodyOffset: afterTag, bodyBytes: readVarint(head, tag.bytes).bytes };
  if (wireType === 1) return { field, bodyOffset: afterTag, bodyBytes: 8 };
  if (wireType === 5) return { field, bodyOffset: afterTag, bodyBytes: 4 };
  if (wireType !== 2) throw new OnnxFormatError('not a protobuf message');
  const length = readVarint(head, tag.bytes);
  return { field, bodyOffset: afterTag + length.bytes, bodyBytes: length.value };
}

/** StringStringEntryProto: field 1 is the key, field 2 the value. */
function parseEntry(entry: Buffer): [string, string] {
  const texts: Record<number, string> = {};
  for (let at = 0; at < entry.length; ) {
    const tag = readVarint(entry, at);
    const length = readVarint(entry, at + tag.bytes);
    const start = at + tag.bytes + length.bytes;
    if (tag.value % 8 !== 2 || start + length.value > entry.length) throw new OnnxFormatError('malformed metadata');
    texts[Math.floor(tag.value / 8)] = entry.toString('utf8', start, start + length.value);
    at = start + length.value;
  }
  return [texts[1] ?? '', texts[2] ?? ''];
}

/** Shorter at the end of the file. */
async function readBytes(file: FileHandle, offset: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, offset);
  return buffer.subarray(0, bytesRead);
}

function readVarint(bytes: Buffer, at: number): { value: number; bytes: number } {
  let value = 0;
  for (let index = 0; index < 10; index++) {
    const byte = bytes[at + index];
    if (byte === undefined) break;
    value += (byte & 0x7f) * 2 ** (7 * index);
    if (byte < 0x80) return { value, bytes: index + 1 };
  }
  throw new OnnxFormatError('not a protobuf message');
}
