import { describe, expect, it } from 'vitest';
import { docxOf, paragraph, xlsxOf } from './packages.ts';
import { bitmapObject, FIRST_MORE, pdfWith, pictureObject, writtenLines } from './pdfs.ts';
import { drawnText, pngOf, turnedLeft } from './pictures.ts';
import { codeOf, read, readConfined, textIn } from './reading.ts';

describe('a PDF', () => {
  it('is read page by page, lines as paragraphs and hyphenated words whole', async () => {
    const first = ['The harbour opens at seven in the morn-', 'ing, and well-known ships come in before that', 'time.'];
    const pages = [writtenLines([...first, '', 'Nobody is let in after nine.']), writtenLines(['Second page.'])];
    expect(await read(pdfWith({ pages, title: 'Harbour rules' }))).toEqual({
      format: 'pdf',
      title: 'Harbour rules',
      sections: [
        {
          heading: null,
          page: 1,
          text: 'The harbour opens at seven in the morning, and well-known ships come in before that time.\n\nNobody is let in after nine.',
        },
        { heading: null, page: 2, text: 'Second page.' },
      ],
      pageCount: 2,
      isOcr: false,
      warnings: [],
    });
  });

  it('keeps the items of a list apart', async () => {
    const list = pdfWith({
      pages: [writtenLines(['What to bring:', '- a coat', '- shoes that', 'keep water out', '- tea'])],
    });
    expect(await textIn(list)).toBe('What to bring:\n\n- a coat\n- shoes that keep water out\n- tea');
  });

  it('that opens without a password is read although it is encrypted', async () => {
    expect(await textIn(pdfWith({ pages: [writtenLines(['Under lock'])], password: '' }))).toBe('Under lock');
  });

  it('that opens with a password is refused', async () => {
    const reading = read(pdfWith({ pages: [writtenLines(['Under lock'])], password: 'opensesame' }));
    expect(await codeOf(reading)).toBe('DOCUMENT_ENCRYPTED');
  });

  it('of pages that are pictures is recognised, in a process of its own', async () => {
    const line = drawnText(['THE TRAIN IS LATE', 'AND THE ROUTE IS CLOSED']);
    const onItsSide = turnedLeft(drawnText(['NO ONE IS HERE']));
    const scan = pdfWith({
      pages: ['/Grey Do', '/Bits Do', '/Stencil Do', writtenLines(['Typed.'])],
      more: [pictureObject(line), bitmapObject(line, 'picture'), bitmapObject(line, 'stencil')],
      resources: `/XObject << /Grey ${FIRST_MORE} 0 R /Bits ${FIRST_MORE + 1} 0 R /Stencil ${FIRST_MORE + 2} 0 R >>`,
    });
    const { sections, isOcr } = await readConfined(scan);
    expect(isOcr).toBe(true);
    const text = 'THE TRAIN IS LATE AND THE ROUTE IS CLOSED';
    expect(sections.map((section) => section.text)).toEqual([text, text, text, 'Typed.']);
    const turned = pdfWith({
      pages: ['/Grey Do'],
      more: [pictureObject(onItsSide)],
      resources: `/XObject << /Grey ${FIRST_MORE} 0 R >>`,
      page: '/Rotate 90',
    });
    expect((await readConfined(turned)).sections[0]!.text).toBe('NO ONE IS HERE');
  });

  it('of more pictures than are recognised says which pages were left out', async () => {
    const resources = `/XObject << /Blank ${FIRST_MORE} 0 R >>`;
    const blank = pictureObject({ width: 40, height: 40, pixels: Buffer.alloc(1600, 255) });
    const pages = [...Array<string>(22).fill('/Blank Do'), writtenLines(['Typed.'])];
    expect(await readConfined(pdfWith({ pages, more: [blank], resources }))).toMatchObject({
      sections: [{ page: 23, text: 'Typed.' }],
      warnings: ['Pictures of text that were too many or too large to be recognised: pages 21, 22.'],
    });
  });

  it('without any text or picture is empty', async () => {
    expect(await codeOf(read(pdfWith({ pages: ['0 0 m 100 100 l S'] })))).toBe('DOCUMENT_EMPTY');
  });
});

describe('a Word document', () => {
  it('becomes Markdown with headings, lists, tables and notes', async () => {
    const item = (level: number) => `<w:numPr><w:ilvl w:val="${level}"/><w:numId w:val="1"/></w:numPr>`;
    const row = (...cells: string[]) =>
      `<w:tr>${cells.map((cell) => `<w:tc>${paragraph(cell)}</w:tc>`).join('')}</w:tr>`;
    const document = docxOf({
      title: 'Terms &amp; conditions',
      body: [
        paragraph('Terms', '<w:pStyle w:val="Heading1"/>'),
        paragraph('Read them &lt;well&gt;.'),
        paragraph('Fees', '<w:pStyle w:val="Heading2"/>'),
        paragraph('by month', item(0)),
        paragraph('or by year', item(1)),
        `<w:tbl>${row('Plan', 'Price')}${row('Free', '0 | nothing')}</w:tbl>`,
      ].join(''),
    });
    expect(await read(document)).toEqual({
      format: 'docx',
      title: 'Terms & conditions',
      sections: [
        {
          heading: null,
          page: null,
          text: [
            '# Terms\n\nRead them <well>.\n\n## Fees\n\n- by month\n  1. or by year',
            '| Plan | Price |\n| --- | --- |\n| Free | 0 \\| nothing |',
          ].join('\n\n'),
        },
      ],
      pageCount: null,
      isOcr: false,
      warnings: [],
    });
  });

  it('tells of pictures and embedded files that it left out', async () => {
    const more = [
      { name: 'word/media/image1.png', content: 'no picture' },
      { name: 'word/embeddings/oleObject1.bin', content: 'no object' },
    ];
    const { warnings } = await read(docxOf({ body: paragraph('Text.'), more }));
    expect(warnings).toEqual([
      '1 pictures in the document were not read.',
      '1 files that are embedded in the document were not read.',
    ]);
  });
});

describe('a workbook', () => {
  it('becomes a table for each sheet, with results in place of formulas and dates as ISO 8601', async () => {
    const people =
      '<row r="1"><c r="A1" t="s"><v>0</v></c><c r="C1" t="inlineStr"><is><t>Born</t></is></c><c r="D1" t="inlineStr"><is><t>Sum</t></is></c></row>' +
      '<row r="3"><c r="A3" t="s"><v>1</v></c><c r="C3" s="1"><v>36526</v></c><c r="D3"><f>40+2</f><v>42</v></c></row>';
    const sheets = { People: people, Blank: '', Flags: '<row r="2"><c r="B2" t="b"><v>1</v></c></row>' };
    const { sections, pageCount } = await read(xlsxOf({ sheets, strings: ['Name', 'Ada|Lovelace'] }));
    expect(pageCount).toBe(3);
    expect(sections).toEqual([
      {
        heading: 'People',
        page: 1,
        text: '| Name | Born | Sum |\n| --- | --- | --- |\n| Ada\\|Lovelace | 2000-01-01 | 42 |',
      },
      { heading: 'Flags', page: 3, text: '| true |\n| --- |' },
    ]);
  });

  it('with a formula without a result is read without it, and says so', async () => {
    const row = '<row r="1"><c r="A1" t="str"><f>A2</f></c><c r="B1" t="s"/><c r="C1"><v>7</v></c></row>';
    const { sections, warnings } = await read(xlsxOf({ sheets: { Sheet: row } }));
    expect(sections[0]!.text).toBe('| 7 |\n| --- |');
    expect(warnings).toEqual(['1 formulas were left out: their results are not in the file.']);
  });
});

describe('an image', () => {
  it('is recognised', async () => {
    expect(await readConfined(pngOf(drawnText(['THE TRAINS ARE LATE'])))).toMatchObject({
      format: 'image',
      pageCount: 1,
      isOcr: true,
      sections: [{ heading: null, page: 1, text: expect.stringContaining('TRAINS') }],
    });
  });

  it('of nothing is empty', async () => {
    const blank = pngOf({ width: 200, height: 100, pixels: Buffer.alloc(20_000, 255) });
    expect(await codeOf(readConfined(blank))).toBe('DOCUMENT_EMPTY');
  });
});

describe('text', () => {
  it('is understood in UTF-8, UTF-16 with and without a mark, and windows-1252', async () => {
    const text = 'Gruß aus Århus: 5 €.';
    const windows = Buffer.from([...text].map((letter) => (letter === '€' ? 0x80 : letter.charCodeAt(0))));
    const utf16 = Buffer.from(text, 'utf16le');
    const marked = Buffer.concat([Buffer.of(0xff, 0xfe), utf16]);
    for (const bytes of [
      Buffer.from(text),
      Buffer.from(`\ufeff${text}`),
      utf16,
      marked,
      Buffer.from(marked).swap16(),
      windows,
    ]) {
      expect(await textIn(bytes)).toBe(text);
    }
  });

  it('is Markdown or a table when its name or type says so', async () => {
    expect((await read('# Hello', { name: 'notes.md' })).format).toBe('markdown');
    expect((await read('# Hello', { mediaType: 'text/markdown; charset=utf-8' })).format).toBe('markdown');
    expect((await read('# Hello')).format).toBe('text');
    const csv = await read('name;note\r\nAda;"a ""b""; c\r\nd"\r\n', { name: 'people.csv' });
    expect(csv).toMatchObject({
      format: 'csv',
      sections: [{ text: '| name | note |\n| --- | --- |\n| Ada | a "b"; c d |' }],
    });
  });

  it('of blanks is empty, as is no text', async () => {
    expect(await codeOf(read(' \r\n\t\n'))).toBe('DOCUMENT_EMPTY');
    expect(await codeOf(read(''))).toBe('DOCUMENT_EMPTY');
  });
});
