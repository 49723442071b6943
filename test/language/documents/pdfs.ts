import { createHash } from 'node:crypto';
import { deflateSync } from 'node:zlib';
import type { Picture } from './pictures.ts';

/** Builds a PDF from the bodies of its objects, numbered from 1. The first is the catalogue. */
export function pdfOf(objects: readonly (string | Buffer)[], trailer = ''): Buffer {
  const parts: Buffer[] = [Buffer.from('%PDF-1.7\n%\xe2\xe3\xcf\xd3\n', 'latin1')];
  let offset = parts[0]!.length;
  const offsets: number[] = [];
  for (const [index, object] of objects.entries()) {
    const body = typeof object === 'string' ? Buffer.from(object, 'latin1') : object;
    const made = Buffer.concat([Buffer.from(`${index + 1} 0 obj\n`), body, Buffer.from('\nendobj\n')]);
    offsets.push(offset);
    parts.push(made);
    offset += made.length;
  }
  const table = offsets.map((at) => `${String(at).padStart(10, '0')} 00000 n \n`).join('');
  const size = objects.length + 1;
  const end = `xref\n0 ${size}\n0000000000 65535 f \n${table}trailer\n<< /Size ${size} /Root 1 0 R ${trailer} >>\nstartxref\n${offset}\n%%EOF\n`;
  return Buffer.concat([...parts, Buffer.from(end, 'latin1')]);
}

export function stream(dictionary: string, data: Buffer | string): Buffer {
  const bytes = Buffer.from(data as string, 'latin1');
  return Buffer.concat([
    Buffer.from(`<< ${dictionary} /Length ${bytes.length} >>\nstream\n`, 'latin1'),
    bytes,
    Buffer.from('\nendstream', 'latin1'),
  ]);
}

/** Operators that write lines from the top of a page; a blank line leaves a gap. */
export function writtenLines(lines: readonly string[]): string {
  const shown = lines.map((line) => `(${line.replace(/[\\()]/g, '\\$&')}) Tj T*`).join('\n');
  return `BT /F1 12 Tf 14 TL 72 720 Td\n${shown}\nET`;
}

export interface PdfPages {
  pages: readonly string[];
  title?: string;
  catalogue?: string;
  /** Additional objects, numbered from `FIRST_MORE`. */
  more?: readonly (string | Buffer)[];
  /** Additional fonts of all pages; F1 is Helvetica. */
  fonts?: string;
  resources?: string;
  page?: string;
  /** Encryption password, possibly empty. */
  password?: string;
}

export const FIRST_MORE = 5;

export function pdfWith({
  pages,
  title,
  catalogue = '',
  more = [],
  fonts = '',
  resources = '',
  page = '',
  password,
}: PdfPages): Buffer {
  const firstPage = FIRST_MORE + more.length;
  const kids = pages.map((_, index) => `${firstPage + index * 2} 0 R`).join(' ');
  const objects: (string | Buffer)[] = [
    `<< /Type /Catalog /Pages 2 0 R ${catalogue} >>`,
    `<< /Type /Pages /Kids [${kids}] /Count ${pages.length} >>`,
    '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>',
    `<< /Producer (tests) ${title === undefined ? '' : `/Title (${title})`} >>`,
    ...more,
  ];
  const key = password === undefined ? null : encryptionOf(password);
  for (const [index, operators] of pages.entries()) {
    const number = firstPage + index * 2;
    const content = Buffer.from(operators, 'latin1');
    objects.push(
      `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents ${number + 1} 0 R /Resources << /Font << /F1 3 0 R ${fonts} >> ${resources} >> ${page} >>`,
      stream('', key === null ? content : rc4(key.ofObject(number + 1), content)),
    );
  }
  // A plain title would have to be encrypted too, so it is omitted.
  const info = key === null ? '/Info 4 0 R' : `/Encrypt ${key.dictionary} /ID [<${ID}> <${ID}>]`;
  return pdfOf(objects, info);
}

export function pictureObject({ width, height, pixels }: Picture): Buffer {
  const dictionary = `/Type /XObject /Subtype /Image /Width ${width} /Height ${height} /ColorSpace /DeviceGray /BitsPerComponent 8 /Filter /FlateDecode`;
  return stream(dictionary, deflateSync(pixels));
}

/** The image object with 1 bit per pixel, as a picture or a stencil mask. */
export function bitmapObject({ width, height, pixels }: Picture, kind: 'picture' | 'stencil'): Buffer {
  const rowBytes = Math.ceil(width / 8);
  const bits = Buffer.alloc(rowBytes * height);
  for (let at = 0; at < width * height; at += 1) {
    const column = at % width;
    if (pixels[at]! > 127) bits[((at - column) / width) * rowBytes + (column >> 3)]! |= 128 >> (column & 7);
  }
  const how = kind === 'stencil' ? '/ImageMask true' : '/ColorSpace /DeviceGray';
  const dictionary = `/Type /XObject /Subtype /Image /Width ${width} /Height ${height} ${how} /BitsPerComponent 1`;
  return stream(dictionary, bits);
}

const ID = '00112233445566778899aabbccddeeff';
const PADDING = Buffer.from('28bf4e5e4e758a4164004e56fffa01082e2e00b6d0683e802f0ca9fe6453697a', 'hex');

/** Standard security handler revision 2, RC4 with 40 bits (ISO 32000-1, 7.6.3). Owner and user password are equal. */
function encryptionOf(password: string) {
  const padded = Buffer.concat([Buffer.from(password, 'latin1'), PADDING]).subarray(0, 32);
  const owner = rc4(md5(padded).subarray(0, 5), padded);
  const permissions = Buffer.alloc(4);
  permissions.writeInt32LE(-4);
  const key = md5(Buffer.concat([padded, owner, permissions, Buffer.from(ID, 'hex')])).subarray(0, 5);
  const user = rc4(key, PADDING);
  return {
    dictionary: `<< /Filter /Standard /V 1 /R 2 /P -4 /O <${owner.toString('hex')}> /U <${user.toString('hex')}> >>`,
    ofObject(number: number): Buffer {
      const numbers = Buffer.alloc(5);
      numbers.writeUIntLE(number, 0, 3);
      return md5(Buffer.concat([key, numbers])).subarray(0, 10);
    },
  };
}

function md5(bytes: Buffer): Buffer {
  return createHash('md5').update(bytes).digest();
}

function rc4(key: Buffer, bytes: Buffer): Buffer {
  const state = Uint8Array.from({ length: 256 }, (_, index) => index);
  for (let i = 0, j = 0; i < 256; i += 1) {
    j = (j + state[i]! + key[i % key.length]!) & 255;
    [state[i], state[j]] = [state[j]!, state[i]!];
  }
  let i = 0;
  let j = 0;
  return Buffer.from(
    bytes.map((byte) => {
      i = (i + 1) & 255;
      j = (j + state[i]!) & 255;
      [state[i], state[j]] = [state[j]!, state[i]!];
      return byte ^ state[(state[i]! + state[j]!) & 255]!;
    }),
  );
}
