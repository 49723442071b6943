import { READING_LIMITS } from './reading-limits.ts';

/** One page of a TIFF file (TIFF 6.0; faxes: RFC 3949), not decoded yet. */
export interface TiffPage {
  width: number;
  height: number;
  /** Repetitions of each row that make pixels square. */
  rowTimes: number;
  /** PDF dictionary entries of a strip: filter, colours and bits (ISO 32000-1, 8.9.5). */
  dictionaryOf: (rows: number) => string;
  /** From the top. */
  strips: { rows: number; data: Buffer }[];
}

/** @throws Error if the file is damaged or of an unsupported kind */
export function pagesOfTiff(bytes: Buffer): TiffPage[] {
  const pages: TiffPage[] = [];
  for (const tags of directoriesOf(bytes)) if (tags.has(TAG.width)) pages.push(pageOf(bytes, tags));
  return pages;
}

type Tags = ReadonlyMap<number, readonly number[]>;

const TAG = {
  ...{ width: 256, height: 257, bits: 258, compression: 259, photometric: 262, fillOrder: 266, stripOffsets: 273 },
  ...{ samples: 277, rowsPerStrip: 278, stripBytes: 279, resolutionX: 282, resolutionY: 283, planes: 284 },
  ...{ faxOptions: 292, predictor: 317, palette: 320, tileWidth: 322, jpegTables: 347 },
} as const;

function pageOf(bytes: Buffer, tags: Tags): TiffPage {
  const value = (tag: keyof typeof TAG, usual: number) => tags.get(TAG[tag])?.[0] ?? usual;
  const [width, height] = [value('width', 0), value('height', 0)];
  if (width < 1 || height < 1) throw new Error('a page has no size');
  if (tags.has(TAG.tileWidth) || value('planes', 1) !== 1) throw new Error('tiles and planes are not read');
  const rowsPerStrip = Math.min(height, value('rowsPerStrip', height));
  const sizes = tags.get(TAG.stripBytes) ?? [];
  const strips = (tags.get(TAG.stripOffsets) ?? []).map((offset, index) => {
    const end = offset + (sizes[index] ?? bytes.length - offset);
    if (end > bytes.length) throw new Error('a strip lies outside the file');
    const rows = Math.min(rowsPerStrip, height - index * rowsPerStrip);
    return { rows, data: stripOf(bytes.subarray(offset, end), tags) };
  });
  if (rowsPerStrip < 1 || strips.length !== Math.ceil(height / rowsPerStrip)) throw new Error('strips are missing');
  const times = Math.round(value('resolutionX', 1) / value('resolutionY', 1));
  const rowTimes = times > 1 && times <= 4 ? times : 1;
  return { width, height, rowTimes, dictionaryOf: (rows) => dictionaryOf(tags, { width, rows }), strips };
}

/** A strip's bytes as a PDF filter expects them. */
function stripOf(data: Buffer, tags: Tags): Buffer {
  if (tags.get(TAG.fillOrder)?.[0] === 2) return Buffer.from(data.map((byte) => REVERSED[byte]!));
  const tables = tags.get(TAG.jpegTables);
  if (tables === undefined) return data;
  // Inserts the tables without their start and end markers, then the strip without its start marker (TIFF Technical
  // Note 2).
  return Buffer.concat([Buffer.of(0xff, 0xd8), Buffer.from(tables.slice(2, -2)), data.subarray(2)]);
}

const REVERSED = Uint8Array.from({ length: 256 }, (_, byte) =>
  Array.from({ length: 8 }, (_, bit) => ((byte >> bit) & 1) << (7 - bit)).reduce((all, one) => all | one),
);

function dictionaryOf(tags: Tags, { width, rows }: { width: number; rows: number }): string {
  const value = (tag: keyof typeof TAG, usual: number) => tags.get(TAG[tag])?.[0] ?? usual;
  const [bits, samples] = [value('bits', 1), value('samples', 1)];
  if (![1, 2, 4, 8, 16].includes(bits)) throw new Error(`samples of ${bits} bits are not read`);
  const compression = value('compression', 1);
  const isFax = compression >= 2 && compression <= 4;
  const photometric = value('photometric', 0);
  // The PDF fax filter already paints fax black as black.
  const isInverted = isFax ? photometric === 1 : photometric === 0;
  const decode = isInverted && samples === 1 ? ' /Decode [1 0]' : '';
  const parameters = isFax
    ? `${faxParameters(compression, value('faxOptions', 0))} /Columns ${width} /Rows ${rows}`
    : value('predictor', 1) === 1
      ? ''
      : `/Predictor 2 /Colors ${samples} /BitsPerComponent ${bits} /Columns ${width}`;
  const filter = FILTERS[compression];
  if (filter === undefined) throw new Error(`the compression ${compression} is not read`);
  const filtered = filter === '' ? '' : ` /Filter /${filter} /DecodeParms << ${parameters} >>`;
  return `/BitsPerComponent ${bits} /ColorSpace ${colourSpace(tags, { photometric, samples, bits })}${decode}${filtered}`;
}

const FILTERS: Readonly<Record<number, string>> = {
  ...{ 1: '', 2: 'CCITTFaxDecode', 3: 'CCITTFaxDecode', 4: 'CCITTFaxDecode', 5: 'LZWDecode', 7: 'DCTDecode' },
  ...{ 8: 'FlateDecode', 32946: 'FlateDecode', 32773: 'RunLengthDecode' },
};

/** ITU-T T.4 in one dimension or two, or T.6. */
function faxParameters(compression: number, options: number): string {
  const isTwoDimensional = compression === 3 && (options & 1) !== 0;
  const isAligned = compression === 2 || (compression === 3 && (options & 4) !== 0);
  return `/K ${compression === 4 ? -1 : isTwoDimensional ? 4 : 0} /EncodedByteAlign ${isAligned} /EndOfBlock false`;
}

function colourSpace(tags: Tags, kind: { photometric: number; samples: number; bits: number }): string {
  const { photometric, samples, bits } = kind;
  if (photometric === 3) {
    if (bits > 8) throw new Error('a palette has at most 256 colours');
    const values = tags.get(TAG.palette) ?? [];
    const colours = 2 ** bits;
    const bytes = Array.from(
      { length: colours * 3 },
      (_, at) => (values[(at % 3) * colours + Math.floor(at / 3)] ?? 0) >> 8,
    );
    return `[/Indexed /DeviceRGB ${colours - 1} <${Buffer.from(bytes).toString('hex')}>]`;
  }
  const name = { 1: '/DeviceGray', 3: '/DeviceRGB', 4: '/DeviceCMYK' }[samples];
  if (name === undefined || (samples === 4 && photometric !== 5)) throw new Error('its colours are not read');
  return name;
}

/** Yields each directory's values by tag. */
function* directoriesOf(bytes: Buffer): Generator<Tags> {
  const isLittleEndian = bytes.toString('latin1', 0, 2) === 'II';
  const short = (at: number) => (isLittleEndian ? bytes.readUInt16LE(at) : bytes.readUInt16BE(at));
  const long = (at: number) => (isLittleEndian ? bytes.readUInt32LE(at) : bytes.readUInt32BE(at));
  const readers: Readonly<Record<number, [size: number, read: (at: number) => number]>> = {
    1: [1, (at) => bytes.readUInt8(at)],
    3: [2, short],
    4: [4, long],
    5: [8, (at) => long(at) / long(at + 4)],
    7: [1, (at) => bytes.readUInt8(at)],
  };
  const seen = new Set<number>();
  for (let at = long(4); at !== 0; ) {
    if (seen.has(at) || seen.size >= READING_LIMITS.pages) throw new Error('the pages have no end');
    seen.add(at);
    const next = at + 2 + short(at) * ENTRY_BYTES;
    const tags = new Map<number, number[]>();
    for (let entry = at + 2; entry < next; entry += ENTRY_BYTES) {
      const [size, read] = readers[short(entry + 2)] ?? [];
      if (size === undefined || read === undefined || !KNOWN_TAGS.has(short(entry))) continue;
      const length = size * long(entry + 4);
      const start = length > 4 ? long(entry + 8) : entry + 8;
      if (start + length > bytes.length) throw new Error('a value lies outside the file');
      tags.set(
        short(entry),
        Array.from({ length: length / size }, (_, index) => read(start + index * size)),
      );
    }
    yield tags;
    at = long(next);
  }
}

const ENTRY_BYTES = 12;
const KNOWN_TAGS: ReadonlySet<number> = new Set(Object.values(TAG));
