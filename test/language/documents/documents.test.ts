import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { crc32 } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { firstPictureOfGif } from '../../../language/documents/gif.ts';
import { openRecognitionEngine, type RecognitionEngine } from '../../../language/documents/text-recognition.ts';
import { pagesOfTiff } from '../../../language/documents/tiff.ts';
import { decodeTiffPage } from '../../../language/documents/tiff-picture.ts';
import { archiveOf, docxOf, paragraph, xlsxEntries, xlsxOf } from './packages.ts';
import { bitmapObject, FIRST_MORE, pdfWith, pictureObject, stream, writtenLines } from './pdfs.ts';
import { drawnText, pngOf, turnedLeft } from './pictures.ts';
import { codeOf, FILES, read, readConfined, textIn } from './reading.ts';

/** One tesseract for the documents that this process reads. A few of each format are read as the server reads them. */
let engine: RecognitionEngine;
beforeAll(async () => {
  engine = await openRecognitionEngine();
});
afterAll(() => engine.terminate());

describe('PDF documents', () => {
  it('yield text page by page, with lines joined to paragraphs and hyphenated words whole', async () => {
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

  it('keep list items apart', async () => {
    const list = pdfWith({
      pages: [writtenLines(['What to bring:', '- a coat', '- shoes that', 'keep water out', '- tea'])],
    });
    expect(await textIn(list)).toBe('What to bring:\n\n- a coat\n- shoes that keep water out\n- tea');
  });

  it('open without a password although encrypted', async () => {
    expect(await textIn(pdfWith({ pages: [writtenLines(['Under lock'])], password: '' }))).toBe('Under lock');
  });

  it('reject a required password', async () => {
    const reading = read(pdfWith({ pages: [writtenLines(['Under lock'])], password: 'opensesame' }));
    expect(await codeOf(reading)).toBe('DOCUMENT_ENCRYPTED');
  });

  it('with AES-128 or AES-256 open without a password and are rejected with one', async () => {
    for (const bits of [128, 256]) {
      const encrypted = (kind: string) => readFile(new URL(`encrypted/aes-${bits}-${kind}.pdf`, import.meta.url));
      expect(await textIn(await encrypted('open'))).toBe('Under lock');
      expect(await codeOf(read(await encrypted('locked')))).toBe('DOCUMENT_ENCRYPTED');
    }
  });

  it('keep table rows apart, and headings in another font', async () => {
    const row = (y: number, ...cells: string[]) =>
      cells.map((cell, column) => `1 0 0 1 ${72 + column * 120} ${y} Tm (${cell}) Tj`).join(' ');
    const page = [
      'BT /F2 12 Tf 14 TL 72 720 Td (Throughput) Tj T* /F1 12 Tf (What went through the harbour in each of the years) Tj T*',
      '(that were counted is below.) Tj',
      row(678, 'Year', 'Ships', 'Tons'),
      row(664, '2025', '1,204', '88,100'),
      row(650, '2026', '1,310', '91,750'),
      '1 0 0 1 72 622 Tm (- ) Tj 1 0 0 1 100 622 Tm (an item whose text is far from its mark and) Tj 1 0 0 1 100 608 Tm (goes on.) Tj ET',
    ].join('\n');
    const bold = '<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica-Bold /Encoding /WinAnsiEncoding >>';
    const bytes = pdfWith({ pages: [page], more: [bold], fonts: `/F2 ${FIRST_MORE} 0 R` });
    expect((await textIn(bytes)).split('\n')).toEqual([
      'Throughput',
      '',
      'What went through the harbour in each of the years that were counted is below.',
      '',
      'Year Ships Tons',
      '2025 1,204 88,100',
      '2026 1,310 91,750',
      '',
      '- an item whose text is far from its mark and goes on.',
    ]);
  });

  it('keep the rows of a narrow table apart, aligned left or right', async () => {
    const at = (x: number, y: number, text: string) => `1 0 0 1 ${x} ${y} Tm (${text}) Tj`;
    const page = [
      'BT /F1 12 Tf',
      // In Helvetica, the gaps between cells are 20 and 10 points and a digit is 6.67 points wide.
      ...[at(72, 720, 'Bell'), at(112, 720, '9.99'), at(72, 706, 'Lamp'), at(112, 706, '19.50')],
      ...[at(72, 664, 'Nut'), at(110, 664, '1.50'), at(72, 650, 'Bolt'), at(103.33, 650, '12.25')],
      'ET',
    ].join('\n');
    expect((await textIn(pdfWith({ pages: [page] }))).split('\n')).toEqual([
      ...['Bell 9.99', 'Lamp 19.50', 'Nut 1.50', 'Bolt 12.25'],
    ]);
  });

  it('join lines of justified text, whose wide gaps form no column', async () => {
    const at = (x: number, y: number, text: string) => `1 0 0 1 ${x} ${y} Tm (${text}) Tj`;
    const page = [
      'BT /F1 12 Tf',
      ...[at(72, 720, 'The'), at(102, 720, 'harbour'), at(158, 720, 'counted')],
      ...[at(72, 706, 'ships'), at(112, 706, 'and'), at(143, 706, 'their'), at(178, 706, 'tons.')],
      'ET',
    ].join('\n');
    expect(await textIn(pdfWith({ pages: [page] }))).toBe('The harbour counted ships and their tons.');
  });

  it('with scanned pages go through OCR in a separate process', async () => {
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
    expect((await read(turned, { engine })).sections[0]!.text).toBe('NO ONE IS HERE');
  });

  it('name the pages whose pictures exceed the OCR limit', async () => {
    const resources = `/XObject << /Blank ${FIRST_MORE} 0 R >>`;
    const blank = pictureObject({ width: 40, height: 40, pixels: Buffer.alloc(1600, 255) });
    const pages = [...Array<string>(22).fill('/Blank Do'), writtenLines(['Typed.'])];
    expect(await read(pdfWith({ pages, more: [blank], resources }), { engine })).toMatchObject({
      sections: [{ page: 23, text: 'Typed.' }],
      warnings: [
        'Pictures that were too many, too large, damaged or JPEG 2000, and not looked at for text: pages 21, 22.',
      ],
    });
  });

  it('warn about an undecodable picture and read the next one', async () => {
    const line = drawnText(['THE TRAIN IS LATE']);
    const object = '/Type /XObject /Subtype /Image /Width 400 /Height 400 /ColorSpace /DeviceGray /BitsPerComponent 8';
    const scan = pdfWith({
      pages: ['/Jpx Do /Grey Do'],
      more: [stream(`${object} /Filter /JPXDecode`, '\0\0\0\x0cjP  \r\n\x87\n'), pictureObject(line)],
      resources: `/XObject << /Jpx ${FIRST_MORE} 0 R /Grey ${FIRST_MORE + 1} 0 R >>`,
    });
    expect(await read(scan, { engine })).toMatchObject({
      sections: [{ text: 'THE TRAIN IS LATE' }],
      warnings: [expect.stringMatching(/JPEG 2000, and not looked at for text: page 1\.$/)],
    });
  });

  it('warn about text in fonts whose encoding is not in the file', async () => {
    const descriptor =
      '/FontName /STSong /Flags 6 /FontBBox [0 -200 1000 900] /ItalicAngle 0 /Ascent 800 /Descent -200';
    const system = '<< /Registry (Adobe) /Ordering (GB1) /Supplement 2 >>';
    const named = ['UniGB-UCS2-H', 'UniGB-UCS2-H', 'GBK-EUC-H'].map(
      (encoding) =>
        `<< /Type /Font /Subtype /Type0 /BaseFont /STSong /Encoding /${encoding} /DescendantFonts [${FIRST_MORE + 1} 0 R] >>`,
    );
    const bytes = pdfWith({
      pages: ['BT /F2 12 Tf <4f60597d> Tj /F3 12 Tf <4f60> Tj /F4 12 Tf <c4e3> Tj ET', writtenLines(['Typed.'])],
      more: [
        `<< /Type /FontDescriptor ${descriptor} /CapHeight 700 /StemV 80 >>`,
        `<< /Type /Font /Subtype /CIDFontType0 /BaseFont /STSong /CIDSystemInfo ${system} /FontDescriptor ${FIRST_MORE} 0 R >>`,
        ...named,
      ],
      fonts: named.map((_, index) => `/F${index + 2} ${FIRST_MORE + 2 + index} 0 R`).join(' '),
    });
    expect(await read(bytes)).toMatchObject({
      sections: [{ page: 2, text: 'Typed.' }],
      warnings: ['Text in fonts whose encoding is not in the file was left out: GBK-EUC-H, UniGB-UCS2-H.'],
    });
  });

  it('without text or pictures count as empty', async () => {
    expect(await codeOf(read(pdfWith({ pages: ['0 0 m 100 100 l S'] })))).toBe('DOCUMENT_EMPTY');
  });
});

describe('Word documents', () => {
  it('become Markdown with headings, lists, tables and notes', async () => {
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

  it('yield text in CDATA sections', async () => {
    const body = paragraph('<!-- <![CDATA[no]]> -->Ada<![CDATA[ & <Bo> ]]>Cy<![CDATA[]]>');
    expect(await read(docxOf({ body, title: '<![CDATA[R&D]]>' }))).toMatchObject({
      title: 'R&D',
      sections: [{ text: 'Ada & <Bo> Cy' }],
    });
    const row = '<row r="1"><c r="A1" t="inlineStr"><is><t><![CDATA[Ada & Bo]]></t></is></c></row>';
    expect(await textIn(xlsxOf({ sheets: { Sheet: row } }))).toBe('| Ada & Bo |\n| --- |');
  });

  it('warn about skipped pictures and embedded files', async () => {
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

describe('Word documents from practice', () => {
  const cell = (text: string, merge = '') => `<w:tc><w:tcPr>${merge}</w:tcPr>${paragraph(text)}</w:tc>`;

  it('keep the columns of tables with vertically merged cells', async () => {
    const begin = '<w:vMerge w:val="restart"/>';
    const rows = [
      cell('Berth', begin) + cell('Ship', '<w:gridSpan w:val="2"/>'),
      cell('', '<w:vMerge/>') + cell('Ada') + cell('7', begin),
      cell('', '<w:vMerge/>') + cell('Bea') + cell('', '<w:vMerge/>'),
      cell('9') + cell('Cleo') + cell('8'),
    ];
    const body = `<w:tbl>${rows.map((row) => `<w:tr>${row}</w:tr>`).join('')}</w:tbl>`;
    expect((await textIn(docxOf({ body }))).split('\n')).toEqual([
      '| Berth | Ship |  |',
      '| --- | --- | --- |',
      '|  | Ada | 7 |',
      '|  | Bea |  |',
      '| 9 | Cleo | 8 |',
    ]);
  });

  it('yield field results, ruby bases and formulas', async () => {
    const run = (text: string) => `<w:r><w:t>${text}</w:t></w:r>`;
    const field = `<w:p>${run('Figure ')}<w:fldSimple w:instr=" SEQ Figure ">${run('4')}</w:fldSimple></w:p>`;
    const ruby = `<w:p><w:r><w:ruby><w:rt>${run('かん')}</w:rt><w:rubyBase>${run('漢')}</w:rubyBase></w:ruby></w:r>${run('字')}</w:p>`;
    const math = (text: string) => `<m:r><m:rPr><m:sty m:val="p"/></m:rPr><m:t>${text}</m:t></m:r>`;
    const fraction = `<m:f><m:num>${math('1')}</m:num><m:den>${math('x+1')}</m:den></m:f>`;
    const power = `<m:sSup><m:e>${math('c')}</m:e><m:sup>${math('2')}</m:sup></m:sSup>`;
    const formula = `<w:p>${run('So ')}<m:oMath xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math">${math('E=')}${power}${math('+')}${fraction}</m:oMath></w:p>`;
    expect(await textIn(docxOf({ body: field + ruby + formula }))).toBe('Figure 4\n\n漢字\n\nSo E=c^2+(1)/(x+1)');
  });

  it('keep words apart at line breaks and tabs of every kind', async () => {
    const tab = '<w:ptab w:relativeTo="margin" w:alignment="right" w:leader="dot"/>';
    const run = `<w:r><w:t>Kiel</w:t><w:cr/><w:t>Berth</w:t>${tab}<w:t>7</w:t></w:r>`;
    expect(await textIn(docxOf({ body: `<w:p>${run}</w:p>` }))).toBe('Kiel\nBerth\t7');
  });

  it('join words at optional hyphens', async () => {
    const run = '<w:r><w:t>Hafen</w:t><w:softHyphen/><w:t>meister\u00adin</w:t></w:r>';
    expect(await textIn(docxOf({ body: `<w:p>${run}</w:p>` }))).toBe('Hafenmeisterin');
  });

  it('yield text with a direction of its own, as in Hebrew and Arabic', async () => {
    const run = (text: string) => `<w:r><w:t xml:space="preserve">${text}</w:t></w:r>`;
    const embedded = `<w:p>${run('שלום ')}<w:dir w:val="rtl">${run('עולם')}<w:bdo w:val="ltr">${run(' 4711')}</w:bdo></w:dir></w:p>`;
    expect(await textIn(docxOf({ body: embedded }))).toBe('שלום עולם 4711');
  });
});

describe('workbooks', () => {
  it('skip chart sheets with a warning', async () => {
    const entries = xlsxEntries({ sheets: { Data: '<row r="1"><c r="A1"><v>7</v></c></row>', Chart: '' } });
    const changed = entries
      .filter(({ name }) => name !== 'xl/worksheets/sheet2.xml')
      .map((entry) => ({
        ...entry,
        content: String(entry.content).replace(
          /worksheet" Target="worksheets\/sheet2.xml"/,
          'chartsheet" Target="chartsheets/sheet1.xml"',
        ),
      }));
    const { sections, warnings } = await read(archiveOf(changed));
    expect(sections).toEqual([{ heading: 'Data', page: 1, text: '| 7 |\n| --- |' }]);
    expect(warnings).toEqual(['1 sheets that are charts were left out.']);
  });

  it('show times of day, durations, errors and dates of any year as a person reads them', async () => {
    const shown = ['0.5451388889', '0', '1.25', '46347.5', '46347', '3000000'];
    const cells = shown.map((value, index) => `<c r="A${index + 1}" s="1"><v>${value}</v></c>`);
    const rows = [...cells, '<c r="A7" t="e"><f>1/0</f><v>#DIV/0!</v></c>'];
    const sheet = rows.map((row, index) => `<row r="${index + 1}">${row}</row>`).join('');
    const { sections } = await read(xlsxOf({ sheets: { Sheet: sheet } }));
    const [first, , ...rest] = sections[0]!.text.replace(/[| ]+/g, '').split('\n');
    const texts = ['13:05:00', '00:00:00', '30:00:00', '2026-11-21T12:00:00', '2026-11-21', '+010113-09-19'];
    expect([first, ...rest]).toEqual([...texts, '#DIV/0!']);
  });

  it('show times and dates that count from 1904, as of Excel for Mac', async () => {
    const rows = ['0', '0.5', '1.25', '44885'].map(
      (value, at) => `<row r="${at + 1}"><c r="A${at + 1}" s="1"><v>${value}</v></c></row>`,
    );
    const entries = xlsxEntries({ sheets: { Sheet: rows.join('') } }).map((entry) => ({
      ...entry,
      content: String(entry.content).replace('<sheets>', '<workbookPr date1904="1"/><sheets>'),
    }));
    const text = await textIn(archiveOf(entries));
    expect(text.match(/\d\S+/g)).toEqual(['00:00:00', '12:00:00', '30:00:00', '2026-11-21']);
  });

  it('show times and dates that count from 1904 if the workbook says "true", as LibreOffice writes it', async () => {
    const rows = ['0.5', '44885'].map(
      (value, at) => `<row r="${at + 1}"><c r="A${at + 1}" s="1"><v>${value}</v></c></row>`,
    );
    const entries = xlsxEntries({ sheets: { Sheet: rows.join('') } }).map((entry) => ({
      ...entry,
      content: String(entry.content).replace('<sheets>', '<workbookPr date1904="true"/><sheets>'),
    }));
    const text = await textIn(archiveOf(entries));
    expect(text.match(/\d\S+/g)).toEqual(['12:00:00', '2026-11-21']);
  });

  it('show the minute of a date and time whose fraction of a day is rounded down', async () => {
    // 2023-03-15 00:15, 01:00 and 23:45, as Excel stores them.
    const stored = ['45000.010416666664', '45000.041666666664', '45000.989583333336'];
    const rows = stored.map((value, at) => `<row r="${at + 1}"><c r="A${at + 1}" s="1"><v>${value}</v></c></row>`);
    const text = await textIn(xlsxOf({ sheets: { Sheet: rows.join('') } }));
    expect(text.match(/\d\S+/g)).toEqual(['2023-03-15T00:15:00', '2023-03-15T01:00:00', '2023-03-15T23:45:00']);
  });

  it('become a table for each sheet, with results in place of formulas and dates as ISO 8601', async () => {
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

  it('show at most the fifteen significant digits that spreadsheets show', async () => {
    // The results of 1.1*3 and 1-0.9, and an id.
    const stored = ['3.3000000000000003', '9.9999999999999978E-2', '1234567890123456'];
    const cells = stored.map((value, at) => `<c r="${'ABC'[at]}1"><v>${value}</v></c>`);
    const text = await textIn(xlsxOf({ sheets: { Sheet: `<row r="1">${cells.join('')}</row>` } }));
    expect(text).toContain('| 3.3 | 0.1 | 1234567890123456 |');
  });

  it('count rows and cells that have no reference', async () => {
    const word = (text: string) => `<c t="inlineStr"><is><t>${text}</t></is></c>`;
    const sheet =
      `<row>${word('Name')}<c/>${word('Age')}</row><row/><row>${word('Ada')}<c r="C3"><v>36</v></c><c><v>7</v></c></row>` +
      `<row r="9"><c s="1"/><c><v>8</v></c></row>`;
    expect(await textIn(xlsxOf({ sheets: { Sheet: sheet } }))).toBe(
      '| Name |  | Age |  |\n| --- | --- | --- | --- |\n| Ada |  | 36 | 7 |\n|  | 8 |  |  |',
    );
  });

  it('skip formulas without a stored result, with a warning', async () => {
    const row = '<row r="1"><c r="A1" t="str"><f>A2</f></c><c r="B1" t="s"/><c r="C1"><v>7</v></c></row>';
    const { sections, warnings } = await read(xlsxOf({ sheets: { Sheet: row } }));
    expect(sections[0]!.text).toBe('| 7 |\n| --- |');
    expect(warnings).toEqual(['1 formulas were left out: their results are not in the file.']);
  });

  it('ignore empty rows at the end of a sheet, as LibreOffice writes them', async () => {
    const sheet =
      '<row r="1"><c r="A1"><v>1</v></c><c r="B1"><v>2</v></c></row><row r="2"/><row r="3"><c r="A3"><v>3</v></c></row>' +
      '<row r="1048575" ht="12.8"><c r="A1048575" s="1"/>\n</row><row r="1048576" ht="12.8"/>';
    expect(await textIn(xlsxOf({ sheets: { Sheet: sheet, Empty: '<row r="1048576"/>' } }))).toBe(
      '| 1 | 2 |\n| --- | --- |\n| 3 |  |',
    );
  });

  it('do not warn about formulas whose result is an empty text', async () => {
    const empty = ['<v></v>', '<v/>'].map(
      (value, at) => `<c r="${'AB'[at]}1" t="str"><f>IF(D1="","",D1)</f>${value}</c>`,
    );
    const row = `<row r="1">${empty.join('')}<c r="C1"><v>7</v></c></row>`;
    expect(await read(xlsxOf({ sheets: { Sheet: row } }))).toMatchObject({
      sections: [{ text: '| 7 |\n| --- |' }],
      warnings: [],
    });
  });
});

describe('images', () => {
  it('go through OCR in a separate process', async () => {
    expect(await readConfined(pngOf(drawnText(['THE TRAINS ARE LATE'])))).toMatchObject({
      format: 'image',
      pageCount: 1,
      isOcr: true,
      sections: [{ heading: null, page: 1, text: expect.stringContaining('TRAINS') }],
    });
  });

  it('on their side or upside down are rotated, alone or in a PDF without rotation', async () => {
    const left = turnedLeft(drawnText(['THE TRAINS ARE LATE', 'AND THE ROUTE IS CLOSED']));
    const upsideDown = turnedLeft(left);
    const right = turnedLeft(upsideDown);
    for (const picture of [upsideDown, right]) {
      const text = (await read(pngOf(picture), { engine })).sections.map((section) => section.text).join();
      expect(text).toMatch(/TRAINS ARE LATE.* ROUTE IS CLOSED/);
    }
    const resources = `/XObject << /Scan ${FIRST_MORE} 0 R >>`;
    const scan = pdfWith({ pages: ['/Scan Do'], more: [pictureObject(left)], resources });
    expect((await read(scan, { engine })).sections[0]!.text).toMatch(/TRAINS ARE LATE.* ROUTE IS CLOSED/);
  });

  it('with several frames use the first of a PNG and reject an animated WebP', async () => {
    const png = pngOf(drawnText(['THE TRAINS ARE LATE']));
    const control = Buffer.from('\0\0\0\x08acTL\0\0\0\x01\0\0\0\0', 'latin1');
    const sum = Buffer.alloc(4);
    sum.writeUInt32BE(crc32(control.subarray(4)));
    const apng = Buffer.concat([png.subarray(0, 33), control, sum, png.subarray(33)]);
    expect((await read(apng, { engine })).sections[0]!.text).toContain('TRAINS');
    const webp = Buffer.from('RIFF\x1c\0\0\0WEBPVP8X\x0a\0\0\0\x02\0\0\0\x09\0\0\x09\0\0ANIM\0\0\0\0', 'latin1');
    await expect(read(webp)).rejects.toMatchObject({
      code: 'DOCUMENT_UNSUPPORTED',
      message: expect.stringContaining('animated'),
    });
  });

  it.each([
    // The decoder of faxes is WebAssembly, which the limits of the process restrict.
    { name: 'two-pages-g4.tif', reader: readConfined },
    { name: 'page.gif', reader: (bytes: Buffer) => read(bytes, { engine }) },
  ])('yield the text of $name page by page', async ({ name, reader }) => {
    const { sections } = await reader(await readFile(join(FILES, name)));
    const pages = ['THE TRAINS ARE LATE', 'AND THE ROUTE IS CLOSED'].slice(0, name.endsWith('tif') ? 2 : 1);
    expect(sections).toEqual(pages.map((text, index) => ({ heading: null, page: index + 1, text })));
  });

  it.each([
    { name: 'page-g3-strips.tif', mostDifferent: 0 },
    { name: 'page-g3-2d.tif', mostDifferent: 0 },
    { name: 'page-packbits.tif', mostDifferent: 0 },
    { name: 'lsb-g4.tif', mostDifferent: 0 },
    // A soft edge counts as half a pixel.
    { name: 'grey-lzw.tif', mostDifferent: 0.05 },
    { name: 'grey-jpeg.tif', mostDifferent: 0.05 },
    { name: 'colour-deflate.tif', mostDifferent: 0.05 },
    { name: 'palette-be.tif', mostDifferent: 0.05 },
    { name: 'page.gif', mostDifferent: 0 },
    { name: 'interlaced.gif', mostDifferent: 0 },
  ])('in $name decode to the original picture', async ({ name, mostDifferent }) => {
    const bytes = await readFile(join(FILES, name));
    const { width, height, grey } = name.endsWith('gif')
      ? firstPictureOfGif(bytes).decode()
      : await decodeTiffPage(pagesOfTiff(bytes)[0]!);
    const drawn = drawnText(['THE TRAINS ARE LATE']);
    expect([width, height]).toEqual([drawn.width, drawn.height]);
    const different = grey.filter((shade, at) => shade > 127 !== drawn.pixels[at]! > 127).length;
    expect(different / grey.length).toBeLessThanOrEqual(mostDifferent);
  });

  it('from a standard-resolution fax are stretched to the paper height', async () => {
    const [page] = pagesOfTiff(await readFile(join(FILES, 'standard-fax.tif')));
    expect((await decodeTiffPage(page!)).height).toBe(2 * page!.height);
  });

  it('without content count as empty', async () => {
    const blank = pngOf({ width: 200, height: 100, pixels: Buffer.alloc(20_000, 255) });
    expect(await codeOf(read(blank, { engine }))).toBe('DOCUMENT_EMPTY');
  });
});

describe('plain text', () => {
  it('decodes UTF-8, UTF-16 with or without a byte order mark, and windows-1252', async () => {
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

  it('ends at the mark that programs of DOS write behind it', async () => {
    expect(await textIn('Ship,Tons\r\nAda,7\r\n\x1a', { name: 'ships.csv' })).toBe(
      '| Ship | Tons |\n| --- | --- |\n| Ada | 7 |',
    );
  });

  it('becomes Markdown or a table if the name or media type says so', async () => {
    expect((await read('# Hello', { name: 'notes.md' })).format).toBe('markdown');
    expect((await read('# Hello', { mediaType: 'text/markdown; charset=utf-8' })).format).toBe('markdown');
    expect((await read('# Hello')).format).toBe('text');
    const csv = await read('name;note\r\nAda;"a ""b""; c\r\nd"\r\n', { name: 'people.csv' });
    expect(csv).toMatchObject({
      format: 'csv',
      sections: [{ text: '| name | note |\n| --- | --- |\n| Ada | a "b"; c d |' }],
    });
  });

  it('separates cells by tabs alone if the name or media type says so', async () => {
    const tabbed = 'City, state, country\tShips\nKiel, SH, DE\t1204\n';
    const text = '| City, state, country | Ships |\n| --- | --- |\n| Kiel, SH, DE | 1204 |';
    expect(await textIn(tabbed, { name: 'harbours.tsv' })).toBe(text);
    expect(await textIn(tabbed, { mediaType: 'text/tab-separated-values' })).toBe(text);
  });

  it('counts as empty if it is blank', async () => {
    expect(await codeOf(read(' \r\n\t\n'))).toBe('DOCUMENT_EMPTY');
    expect(await codeOf(read(''))).toBe('DOCUMENT_EMPTY');
  });
});
