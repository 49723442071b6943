import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { constants, deflateRawSync, deflateSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { pagesOf } from '../../../language/documents/picture.ts';
import { READING_LIMITS } from '../../../language/documents/reading-limits.ts';
import * as fc from '../../properties.ts';
import { isDeep } from '../../properties.ts';
import { archiveOf, docxEntries, docxOf, paragraph, xlsxOf } from './packages.ts';
import { FIRST_MORE, pdfOf, pdfWith, stream, writtenLines } from './pdfs.ts';
import { drawnText, pngOf, pngWith } from './pictures.ts';
import { codeOf, FILES, read, readConfined, textIn } from './reading.ts';

const MILLION = 1_000_000;
/** In the default suite a quarter of the memory shows the same as all of it, in a quarter of the time. */
const MEMORY = isDeep ? {} : { residentBytes: READING_LIMITS.residentBytes / 4 };
/** Damaged copies of each file. */
const COPIES = { numRuns: isDeep ? 100 : 30 };

describe('hostile archives', () => {
  const plain = docxEntries({ body: paragraph('Text.') });

  it('with an inflation bomb are too large', async () => {
    const body = paragraph('A'.repeat(10 * MILLION));
    expect(await codeOf(readConfined(docxOf({ body })))).toBe('DOCUMENT_TOO_LARGE');
  });

  it('with a bomb spread over many parts are too large', async () => {
    const digits = Array.from({ length: MILLION / 10 }, (_, index) => ((index * 7919) % 104_729) % 10).join('');
    const content = Buffer.from(`<a>${digits.repeat(60)}</a>`);
    const packed = deflateRawSync(content, { level: 1 });
    // No part exceeds a limit by itself.
    expect(content.length / packed.length).toBeLessThan(READING_LIMITS.packageRatio);
    expect(content.length).toBeLessThan(READING_LIMITS.packageBytes);
    const more = Array.from({ length: 20 }, (_, index) => ({ name: `word/part${index}.xml`, content, packed }));
    expect(await codeOf(readConfined(docxOf({ body: paragraph('Text.'), more })))).toBe('DOCUMENT_TOO_LARGE');
  });

  it('with a forged part size are measured by the actual output', async () => {
    const lying = {
      name: 'word/document.xml',
      content: '<a/>',
      packed: spaces(300),
      claims: { uncompressedSize: 100 },
    };
    const entries = plain.map((entry) => (entry.name === lying.name ? lying : entry));
    expect(await codeOf(readConfined(archiveOf(entries)))).toBe('DOCUMENT_TOO_LARGE');
    const small = { ...lying, packed: deflateRawSync(Buffer.from('<a></a>')) };
    expect(await codeOf(read(archiveOf(plain.map((entry) => (entry.name === small.name ? small : entry)))))).toBe(
      'DOCUMENT_NOT_READABLE',
    );
  });

  it('with overlapping entries are too large', async () => {
    const more = [{ name: 'word/again.xml', content: '<a/>', claims: { offset: 0 } }];
    expect(await codeOf(read(docxOf({ body: '', more })))).toBe('DOCUMENT_TOO_LARGE');
  });

  it('with too many entries are too large', async () => {
    const more = Array.from({ length: 6000 }, (_, index) => ({
      name: `word/media/${index}.png`,
      content: '',
      method: 'stored' as const,
    }));
    expect(await codeOf(read(docxOf({ body: '', more })))).toBe('DOCUMENT_TOO_LARGE');
  });

  it('inside a document stay closed', async () => {
    const inner = archiveOf([{ name: 'bomb', content: Buffer.alloc(10 * MILLION) }]);
    const more = [{ name: 'word/embeddings/inner.zip', content: inner }];
    expect(await textIn(docxOf({ body: paragraph('Text.'), more }))).toBe('Text.');
  });

  it('with two entries of one name are rejected', async () => {
    const more = [{ name: 'WORD/document.xml', content: '<a/>' }];
    expect(await codeOf(read(docxOf({ body: '', more })))).toBe('DOCUMENT_NOT_READABLE');
  });

  it('with a password are rejected as encrypted', async () => {
    const entries = plain.map((entry) => ({ ...entry, isEncrypted: true }));
    expect(await codeOf(read(archiveOf(entries)))).toBe('DOCUMENT_ENCRYPTED');
  });

  it('with an unknown compression method or damaged data are rejected', async () => {
    const change = (more: object) =>
      plain.map((entry) => (entry.name === 'word/document.xml' ? { ...entry, ...more } : entry));
    expect(await codeOf(read(archiveOf(change({ method: 'unknown' }))))).toBe('DOCUMENT_NOT_READABLE');
    expect(await codeOf(read(archiveOf(change({ claims: { crc: 7 } }))))).toBe('DOCUMENT_NOT_READABLE');
    expect(await codeOf(read(archiveOf(change({ packed: Buffer.from('not deflated') }))))).toBe(
      'DOCUMENT_NOT_READABLE',
    );
    expect(await codeOf(read(archiveOf(change({ claims: { compressedSize: 0xffff_fff0 } }))))).toBe(
      'DOCUMENT_NOT_READABLE',
    );
  });

  it('accept part names that equal object prototype members', async () => {
    const more = ['__proto__', 'constructor', 'word/__proto__.xml', 'word/constructor.xml'].map((name) => ({
      name,
      content: '<a/>',
    }));
    expect(await textIn(docxOf({ body: paragraph('Text.'), more }))).toBe('Text.');
    const sheets = { constructor: '<row r="1"><c r="A1"><v>1</v></c></row>' };
    expect(await textIn(xlsxOf({ sheets }))).toBe('| 1 |\n| --- |');
  });
});

describe('hostile Office documents', () => {
  it('with entity declarations are rejected before expansion', async () => {
    const bomb = `<!DOCTYPE lolz [<!ENTITY a "${'ha'.repeat(1000)}"><!ENTITY b "${'&a;'.repeat(1000)}">]>`;
    expect(await codeOf(read(docxOf({ body: paragraph('&b;'), prolog: bomb })))).toBe('DOCUMENT_NOT_READABLE');
    const more = [{ name: 'xl/other.xml', content: `${bomb}<a>&b;</a>` }];
    expect(await codeOf(read(xlsxOf({ sheets: { Sheet: '' }, more })))).toBe('DOCUMENT_NOT_READABLE');
  });

  it('with an external entity do not reveal the local file', async () => {
    const prolog = '<!DOCTYPE a [<!ENTITY file SYSTEM "file:///etc/passwd">]>';
    expect(await codeOf(read(docxOf({ body: paragraph('&file;'), prolog })))).toBe('DOCUMENT_NOT_READABLE');
  });

  it('with macros are read without them, with a warning', async () => {
    const warnings = ['The document has macros, which were neither run nor read.'];
    const word = docxOf({
      body: paragraph('Enable content!'),
      contentType: 'application/vnd.ms-word.document.macroEnabled.main+xml',
      more: [{ name: 'word/vbaProject.bin', content: 'Sub AutoOpen()' }],
    });
    expect(await read(word, { name: 'invoice.docm' })).toMatchObject({ format: 'docx', warnings });
    const excel = xlsxOf({
      sheets: { Sheet: '<row r="1"><c r="A1"><v>1</v></c></row>' },
      contentType: 'application/vnd.ms-excel.sheet.macroEnabled.main+xml',
    });
    expect(await read(excel, { name: 'invoice.xlsm' })).toMatchObject({ format: 'xlsx', warnings });
  });

  it('with extreme nesting end in a document error', async () => {
    const depth = 200_000;
    const body = `${'<w:sdt><w:sdtContent>'.repeat(depth)}${paragraph('deep')}${'</w:sdtContent></w:sdt>'.repeat(depth)}`;
    expect(await codeOf(readConfined(docxOf({ body })))).toMatch(/^DOCUMENT_(NOT_READABLE|TOO_LARGE)$/);
  });

  it('with formulas that call programs or files yield only the stored results', async () => {
    const row =
      '<row r="1"><c r="A1" t="str"><f>cmd|\'/c calc\'!A0</f><v>calculated</v></c>' +
      '<c r="B1"><f>[1]Sheet1!$A$1</f><v>12</v></c><c r="C1" t="str"><f>WEBSERVICE("http://127.0.0.1/x")</f></c></row>';
    const more = [{ name: 'xl/externalLinks/externalLink1.xml', content: '<externalLink/>' }];
    const { sections } = await read(xlsxOf({ sheets: { Sheet: row }, more }));
    expect(sections[0]!.text).toBe('| calculated | 12 |\n| --- | --- |');
  });

  it('with a cell at the far end of a sheet are too large', async () => {
    const far = '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>';
    expect(await codeOf(read(xlsxOf({ sheets: { Sheet: far } })))).toBe('DOCUMENT_TOO_LARGE');
    const farther = '<row r="999999999999"><c r="A999999999999"><v>1</v></c></row>';
    expect(await codeOf(read(xlsxOf({ sheets: { Sheet: farther } })))).toBe('DOCUMENT_TOO_LARGE');
    const hidden =
      '<x:row xmlns:x="http://schemas.openxmlformats.org/spreadsheetml/2006/main" r="999999999"><x:c r="A999999999"><x:v>1</x:v></x:c></x:row>';
    expect(await codeOf(read(xlsxOf({ sheets: { Sheet: hidden } })))).toBe('DOCUMENT_TOO_LARGE');
  });

  it('in a format before 2007 are named, and rejected as encrypted if they have a password', async () => {
    const compound = Buffer.concat([Buffer.from('d0cf11e0a1b11ae1', 'hex'), Buffer.alloc(2040)]);
    expect(await codeOf(read(compound, { name: 'letter.docx' }))).toBe('DOCUMENT_UNSUPPORTED');
    const encrypted = Buffer.concat([compound, Buffer.from('EncryptedPackage', 'utf16le'), Buffer.alloc(480)]);
    expect(await codeOf(read(encrypted, { name: 'letter.docx' }))).toBe('DOCUMENT_ENCRYPTED');
  });
});

describe('hostile PDFs', () => {
  it('with ten thousand pages are rejected before reading', async () => {
    const kids = '5 0 R '.repeat(10_000);
    const objects = [
      '<< /Type /Catalog /Pages 2 0 R >>',
      `<< /Type /Pages /Kids [${kids}] /Count 10000 >>`,
      '<< >>',
      '<< >>',
      '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] >>',
    ];
    expect(await codeOf(read(pdfOf(objects)))).toBe('DOCUMENT_TOO_LARGE');
  });

  it('with cyclic page trees are rejected', async () => {
    const objects = [
      '<< /Type /Catalog /Pages 2 0 R >>',
      '<< /Type /Pages /Kids [3 0 R] /Count 3 /Parent 3 0 R >>',
      '<< /Type /Pages /Kids [2 0 R 3 0 R] /Count 3 /Parent 2 0 R >>',
    ];
    expect(await codeOf(read(pdfOf(objects)))).toBe('DOCUMENT_NOT_READABLE');
  });

  it('with extreme nesting are rejected', async () => {
    const page = `${'['.repeat(MILLION)}${']'.repeat(MILLION)}`;
    const form = pdfWith({ pages: [`BT /F1 12 Tf ${page} TJ ET`] });
    expect(await codeOf(readConfined(form))).toMatch(/^DOCUMENT_/);
    const looped = pdfWith({
      pages: ['/Loop Do'],
      more: [
        stream(
          `/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /Loop ${FIRST_MORE} 0 R >> >>`,
          '/Loop Do /Loop Do',
        ),
      ],
      resources: `/XObject << /Loop ${FIRST_MORE} 0 R >>`,
    });
    expect(await codeOf(readConfined(looped))).toMatch(/^DOCUMENT_/);
  });

  it('with an endlessly inflating stream do not exhaust memory', async () => {
    // The two bytes are the header of zlib (RFC 1950).
    const inner = Buffer.concat([Buffer.of(0x78, 0x01), spaces(800)]);
    const twice = stream('/Filter [/FlateDecode /FlateDecode]', deflateSync(inner, { level: 9 }));
    const objects = [
      '<< /Type /Catalog /Pages 2 0 R >>',
      '<< /Type /Pages /Kids [3 0 R] /Count 1 >>',
      '<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R >>',
      twice,
    ];
    expect(await codeOf(readConfined(pdfOf(objects), MEMORY))).toBe('DOCUMENT_TOO_LARGE');
  });

  it('run no script and reveal no embedded file', async () => {
    const script = stream('', "app.alert('run'); this.submitForm('http://127.0.0.1:9/');");
    const bytes = pdfWith({
      pages: [writtenLines(['Only this.'])],
      catalogue: `/OpenAction << /S /JavaScript /JS ${FIRST_MORE} 0 R >> /Names << /EmbeddedFiles << /Names [(evil.exe) ${FIRST_MORE + 1} 0 R] >> /JavaScript << /Names [(x) << /S /JavaScript /JS ${FIRST_MORE} 0 R >>] >> >> /AA << /WC << /S /Launch /F (calc.exe) >> >>`,
      more: [
        script,
        '<< /Type /Filespec /F (evil.exe) /EF << /F 7 0 R >> >>',
        stream('/Type /EmbeddedFile', 'MZ evil'),
      ],
    });
    expect(await textIn(bytes)).toBe('Only this.');
  });

  it('with an invalid font still yield their text', async () => {
    const bytes = pdfWith({
      pages: ['BT /F2 12 Tf 72 720 Td (Still here) Tj ET'],
      more: [
        `<< /Type /Font /Subtype /TrueType /BaseFont /Evil /Encoding /WinAnsiEncoding /FirstChar 0 /LastChar 255 /Widths [${'600 '.repeat(256)}] /FontDescriptor ${FIRST_MORE + 1} 0 R >>`,
        `<< /Type /FontDescriptor /FontName /Evil /Flags 32 /FontFile2 ${FIRST_MORE + 2} 0 R >>`,
        stream('', Buffer.alloc(100_000, 0xff)),
      ],
      resources: `/Font << /F2 ${FIRST_MORE} 0 R >>`,
    });
    expect(await textIn(bytes)).toBe('Still here');
  });

  it('with an oversized picture are read without it', async () => {
    const bytes = pdfWith({
      pages: ['/Huge Do', writtenLines(['Text.'])],
      more: [
        stream(
          '/Type /XObject /Subtype /Image /Width 60000 /Height 60000 /ColorSpace /DeviceGray /BitsPerComponent 8',
          'x',
        ),
      ],
      resources: `/XObject << /Huge ${FIRST_MORE} 0 R >>`,
    });
    const { sections } = await read(bytes);
    expect(sections).toEqual([{ heading: null, page: 2, text: 'Text.' }]);
  });
});

describe('hostile TIFF and GIF files', () => {
  it('with huge dimensions are rejected by their header', async () => {
    const tiff = Buffer.from(await readFile(join(FILES, 'grey-lzw.tif')));
    const isWidth = (at: number) => tiff.readUInt16LE(at) === 256;
    const width = Array.from({ length: 20 }, (_, entry) => tiff.readUInt32LE(4) + 2 + entry * 12).find(isWidth)!;
    // Type 4 is LONG, 32 bits.
    tiff.writeUInt16LE(4, width + 2);
    tiff.writeUInt32LE(0x7fff_ffff, width + 8);
    expect(await codeOf(read(tiff))).toBe('DOCUMENT_TOO_LARGE');
    const gif = Buffer.from(await readFile(join(FILES, 'page.gif')));
    gif.writeUInt16LE(0xffff, 6);
    expect(await codeOf(read(gif))).toBe('DOCUMENT_TOO_LARGE');
  });

  it('with cyclic page links are rejected', async () => {
    const tiff = Buffer.from(await readFile(join(FILES, 'grey-lzw.tif')));
    const first = tiff.readUInt32LE(4);
    tiff.writeUInt32LE(first, first + 2 + tiff.readUInt16LE(first) * 12);
    expect(await codeOf(read(tiff))).toBe('DOCUMENT_NOT_READABLE');
  });

  it.each(['two-pages-g4.tif', 'page-g3-strips.tif', 'grey-lzw.tif', 'page.gif', 'interlaced.gif'])(
    'such as %s yield a result or an error for every truncation and byte change',
    async (name) => {
      const bytes = await readFile(join(FILES, name));
      const type = name.endsWith('gif') ? 'gif' : 'tif';
      const decode = async (changed: Buffer) => {
        for (const { width, height, picture } of await pagesOf(changed, type)) {
          if (width * height <= 1_000_000) await picture();
        }
      };
      const place = fc.integer({ min: 8, max: bytes.length - 1 });
      await fc.assert(
        fc.asyncProperty(place, fc.integer({ min: 0, max: 255 }), fc.boolean(), async (at, value, isCut) => {
          const changed = isCut ? bytes.subarray(0, at) : Buffer.from(bytes);
          if (!isCut) changed[at] = value;
          await decode(changed).catch((error) => expect(error).toBeInstanceOf(Error));
        }),
        COPIES,
      );
    },
  );
});

describe('hostile images', () => {
  it('with huge dimensions are rejected by their header', async () => {
    const huge = pngWith({ width: 60_000, height: 60_000, data: Buffer.alloc(100) });
    expect(await codeOf(read(huge))).toBe('DOCUMENT_TOO_LARGE');
    expect(await codeOf(read(pngWith({ width: 1, height: 0xffff_ffff, data: Buffer.alloc(100) })))).toBe(
      'DOCUMENT_TOO_LARGE',
    );
    const jpeg = Buffer.from(
      'ffd8ffe000104a46494600010100000100010000ffc00011089c409c4003012200021101031101ffda',
      'hex',
    );
    expect(await codeOf(read(jpeg))).toBe('DOCUMENT_TOO_LARGE');
    const webp = Buffer.from('RIFF\x20\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\0\0\0\0', 'latin1');
    expect(await codeOf(read(webp))).toBe('DOCUMENT_TOO_LARGE');
  });

  it('with damaged data are rejected', async () => {
    expect(
      await codeOf(readConfined(pngWith({ width: 100, height: 100, data: Buffer.from('no image data') }))),
    ).toMatch(/^DOCUMENT_(NOT_READABLE|EMPTY)$/);
  });
});

describe('repetitive input', () => {
  it('takes linear time', async () => {
    expect(await textIn(`${' '.repeat(MILLION)}x\n${'\t'.repeat(MILLION)}`)).toHaveLength(MILLION + 1);
    const sheet = '<row r="1"><c r="A1"><v>1</v></c></row>';
    for (const tags of ['<c ', '<c r="', '<row r=', '<c><f>', '<c '.concat(' r '.repeat(50))]) {
      expect(await codeOf(read(xlsxOf({ sheets: { Sheet: `${sheet}<!--${tags.repeat(MILLION / 50)}-->` } })))).toMatch(
        /^read$/,
      );
    }
  });

  it.each([
    ['tag', (long: string) => `<c x="${long}"/>`],
    ['tag that is not closed', (long: string) => `<c ${long}`],
    ['text', (long: string) => long],
    ['CDATA section', (long: string) => `<![CDATA[${long}]]>`],
    ['processing instruction', (long: string) => `<?x ${long}?>`],
  ])('in one %s of a workbook is too large', async (_, token) => {
    const long = ' r>'.repeat(MILLION);
    expect(await codeOf(read(xlsxOf({ sheets: { Sheet: token(long) } })))).toBe('DOCUMENT_TOO_LARGE');
  });
});

describe('files with misleading content', () => {
  const pdf = pdfWith({ pages: [writtenLines(['Text of a page.'])] });
  const docx = docxOf({ body: paragraph('Text of a page.') });
  const xlsx = xlsxOf({ sheets: { Sheet: '<row r="1"><c r="A1"><v>1</v></c></row>' } });
  const png = pngOf(drawnText(['HE']));

  it('get their format from the content, not from name or media type', async () => {
    expect((await read(pdf, { name: 'picture.png', mediaType: 'image/png' })).format).toBe('pdf');
    expect((await read(docx, { name: 'report.pdf' })).format).toBe('docx');
    expect((await read(xlsx, { name: 'letter.docx' })).format).toBe('xlsx');
    expect((await read('BMW is a maker of cars.', { name: 'cars.txt' })).format).toBe('text');
  });

  it('with an unsupported type are rejected by the detected type', async () => {
    const others: [Buffer | string, RegExp][] = [
      [Buffer.concat([Buffer.from('MZ\x90\0\x03\0\0\0', 'latin1'), Buffer.alloc(200)]), /exe|x-msdownload/],
      [Buffer.concat([Buffer.from('\x7fELF\x02\x01\x01', 'latin1'), Buffer.alloc(200)]), /elf/],
      [Buffer.concat([Buffer.from('ID3\x04\0\0\0\0\0\0', 'latin1'), Buffer.alloc(500)]), /audio|data/],
      [Buffer.concat([Buffer.from('\0\0\0\x18ftypmp42\0\0\0\0mp42isom', 'latin1'), Buffer.alloc(100)]), /video/],
      [Buffer.concat([Buffer.from('\x1f\x8b\x08', 'latin1'), Buffer.alloc(100)]), /gzip/],
      [archiveOf([{ name: 'readme.txt', content: 'Hello' }]), /ZIP/],
      [archiveOf([{ name: 'mimetype', content: 'application/vnd.oasis.opendocument.text' }]), /OpenDocument/],
      ['<!DOCTYPE html><html><body>Hello</body></html>', /HTML/],
      ['<?xml version="1.0"?>\n<!-- saved -->\n<!DOCTYPE html PUBLIC "x"><html>Hello</html>', /HTML/],
      ['{\\rtf1 Hello}', /RTF/],
      [Buffer.concat([Buffer.from('8BPS\0\x01', 'latin1'), Buffer.alloc(100)]), /photoshop|psd/i],
      [Buffer.alloc(64), /data/],
    ];
    for (const [bytes, named] of others) {
      await expect(read(bytes, { name: 'report.pdf' })).rejects.toMatchObject({
        code: 'DOCUMENT_UNSUPPORTED',
        details: { seems_to_be: expect.stringMatching(named) },
      });
    }
  });

  it('truncated anywhere yield a partial text or a document error', async () => {
    for (const whole of [pdf, docx, xlsx]) {
      for (let part = 1; part < 16; part += 1) {
        const code = await codeOf(read(whole.subarray(0, Math.floor((whole.length * part) / 16))));
        expect(['read', 'DOCUMENT_NOT_READABLE', 'DOCUMENT_UNSUPPORTED', 'DOCUMENT_EMPTY']).toContain(code);
      }
    }
    const code = await codeOf(read(png.subarray(0, png.length >> 1)));
    expect(['read', 'DOCUMENT_NOT_READABLE', 'DOCUMENT_EMPTY']).toContain(code);
  });

  it('with random bytes behind any known header yield a text or a document error', async () => {
    const beginnings = [
      '',
      '%PDF-1.7\n',
      'PK\x03\x04',
      'RIFF\0\0\0\0WEBP',
      '\xff\xfe',
      '\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1',
      '"',
    ];
    const bytes = fc.tuple(fc.constantFrom(...beginnings), fc.uint8Array({ maxLength: 400 }));
    await fc.assert(
      fc.asyncProperty(bytes, async ([beginning, rest]) => {
        const code = await codeOf(read(Buffer.concat([Buffer.from(beginning, 'latin1'), rest]), { name: 'a.csv' }));
        expect(code).toMatch(/^(read|DOCUMENT_[A-Z_]+)$/);
      }),
      { numRuns: 150 },
    );
  });

  it('with changed bytes yield a text or a document error', async () => {
    const change = fc.tuple(fc.constantFrom(pdf, docx, xlsx), fc.nat(), fc.nat({ max: 255 }));
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 3 }), async (changes) => {
        const bytes = Buffer.from(changes[0]![0]);
        for (const [, at, value] of changes) bytes[at % bytes.length] = value;
        expect(await codeOf(read(bytes))).toMatch(/^(read|DOCUMENT_[A-Z_]+)$/);
      }),
      { numRuns: 150 },
    );
  });
});

/** Deflated spaces. Deflate restarts after each million, so the compressed million is repeated. */
function spaces(millions: number): Buffer {
  const million = deflateRawSync(Buffer.alloc(MILLION, 0x20), { finishFlush: constants.Z_FULL_FLUSH });
  return Buffer.concat([...Array<Buffer>(millions).fill(million), deflateRawSync('')]);
}
