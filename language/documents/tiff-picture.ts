import type { GreyPicture } from './grey-picture.ts';
import { openPdf } from './open-pdf.ts';
import { paintedPictures } from './pdf-pictures.ts';
import { READING_LIMITS } from './reading-limits.ts';
import type { TiffPage } from './tiff.ts';

/**
 * Decodes a page of a TIFF file with pdf.js. PDF has the same filters as TIFF (ISO 32000-1, 7.4), so the strips are
 * wrapped in a PDF.
 * @throws Error if the page is damaged
 */
export async function decodeTiffPage(page: TiffPage): Promise<GreyPicture> {
  const { width, height, rowTimes, strips } = page;
  const pdf = await openPdf(pdfOf(page));
  try {
    const painted = await paintedPictures(await pdf.getPage(1));
    const isWhole = painted.every((strip, index) => strip?.width === width && strip.height === strips[index]!.rows);
    if (painted.length !== strips.length || !isWhole) throw new Error('a strip of the page is damaged');
    const picture = { width, height, grey: Buffer.concat(painted.map((strip) => strip!.grey)) };
    return height * rowTimes * width > READING_LIMITS.picturePixels ? picture : withRowsRepeated(picture, rowTimes);
  } finally {
    await pdf.destroy();
  }
}

/** Faxes of standard resolution have half the vertical resolution (ITU-T T.4). */
function withRowsRepeated({ width, height, grey }: GreyPicture, times: number): GreyPicture {
  if (times === 1) return { width, height, grey };
  const repeated = Buffer.alloc(grey.length * times);
  for (let row = 0; row < height * times; row += 1) {
    const from = Math.floor(row / times) * width;
    grey.copy(repeated, row * width, from, from + width);
  }
  return { width, height: height * times, grey: repeated };
}

/** Builds a PDF of one page that paints the strips from the top. */
function pdfOf({ width, dictionaryOf, strips }: TiffPage): Buffer {
  const names = strips.map((_, index) => `/S${index}`);
  const resources = names.map((name, index) => `${name} ${FIRST_STRIP + index} 0 R`).join(' ');
  const objects: (string | Buffer)[] = [
    '<< /Type /Catalog /Pages 2 0 R >>',
    '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
    `<< /Type /Page /Parent 2 0 R /MediaBox [0 0 1 1] /Contents 4 0 R /Resources << /XObject << ${resources} >> >> >>`,
    streamOf('', Buffer.from(names.map((name) => `${name} Do`).join('\n'))),
    ...strips.map(({ rows, data }) =>
      streamOf(`/Type /XObject /Subtype /Image /Width ${width} /Height ${rows} ${dictionaryOf(rows)}`, data),
    ),
  ];
  const parts = [Buffer.from('%PDF-1.4\n')];
  const offsets: number[] = [];
  let bytes = parts[0]!.length;
  for (const [index, object] of objects.entries()) {
    offsets.push(bytes);
    const part = Buffer.concat([Buffer.from(`${index + 1} 0 obj\n`), Buffer.from(object), Buffer.from('\nendobj\n')]);
    parts.push(part);
    bytes += part.length;
  }
  const entries = offsets.map((offset) => `${String(offset).padStart(10, '0')} 00000 n \n`).join('');
  const table = `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${entries}`;
  const trailer = `trailer\n<< /Size ${objects.length + 1} /Root 1 0 R >>\nstartxref\n${bytes}\n%%EOF\n`;
  return Buffer.concat([...parts, Buffer.from(table + trailer)]);
}

const FIRST_STRIP = 5;

function streamOf(dictionary: string, data: Buffer): Buffer {
  const head = `<< ${dictionary} /Length ${data.length} >>\nstream\n`;
  return Buffer.concat([Buffer.from(head), data, Buffer.from('\nendstream')]);
}
