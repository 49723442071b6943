import { crc32, deflateRawSync } from 'node:zlib';

export interface ArchiveEntry {
  name: string;
  content: Buffer | string;
  /** False header fields, to test files that lie about themselves. */
  claims?: { uncompressedSize?: number; compressedSize?: number; crc?: number; offset?: number };
  method?: 'stored' | 'deflated' | 'unknown';
  isEncrypted?: boolean;
  packed?: Buffer;
}

export function archiveOf(entries: readonly ArchiveEntry[]): Buffer {
  const local: Buffer[] = [];
  const central: Buffer[] = [];
  let offset = 0;
  for (const entry of entries) {
    const { name, claims = {}, method = 'deflated', isEncrypted = false } = entry;
    const content = Buffer.from(entry.content as string);
    const packed = entry.packed ?? (method === 'deflated' ? deflateRawSync(content, { level: 9 }) : content);
    const fields = Buffer.alloc(26);
    fields.writeUInt16LE(20, 0);
    fields.writeUInt16LE(isEncrypted ? 1 : 0, 2);
    fields.writeUInt16LE({ stored: 0, deflated: 8, unknown: 97 }[method], 4);
    fields.writeUInt32LE(claims.crc ?? crc32(content), 10);
    fields.writeUInt32LE(claims.compressedSize ?? packed.length, 14);
    fields.writeUInt32LE(claims.uncompressedSize ?? content.length, 18);
    fields.writeUInt16LE(Buffer.byteLength(name), 22);
    const header = Buffer.concat([Buffer.from('PK\x03\x04', 'latin1'), fields, Buffer.from(name)]);
    const position = Buffer.alloc(14);
    position.writeUInt32LE(claims.offset ?? offset, 10);
    const made = Buffer.concat([Buffer.from('PK\x01\x02\x14\x00', 'latin1'), fields, position, Buffer.from(name)]);
    central.push(made);
    local.push(header, packed);
    offset += header.length + packed.length;
  }
  const directory = Buffer.concat(central);
  const end = Buffer.alloc(22);
  end.write('PK\x05\x06', 'latin1');
  end.writeUInt16LE(entries.length, 8);
  end.writeUInt16LE(entries.length, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(offset, 16);
  return Buffer.concat([...local, directory, end]);
}

const XML = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>';
const WORD = 'http://schemas.openxmlformats.org/wordprocessingml/2006/main';
const SHEETS = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main';
const OFFICE = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';
const PACKAGE = 'http://schemas.openxmlformats.org/package/2006';

export interface Docx {
  /** Children of `w:body`. */
  body: string;
  title?: string;
  /** Content type of the main part. */
  contentType?: string;
  /** Inserted before the root of the main part. */
  prolog?: string;
  more?: ArchiveEntry[];
}

export function docxEntries({ body, title, contentType, prolog = '', more = [] }: Docx): ArchiveEntry[] {
  const main = contentType ?? 'application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml';
  return [
    { name: '[Content_Types].xml', content: contentTypes({ '/word/document.xml': main }) },
    { name: '_rels/.rels', content: relations([['rId1', 'officeDocument', 'word/document.xml']]) },
    {
      name: 'word/document.xml',
      content: `${XML}${prolog}<w:document xmlns:w="${WORD}"><w:body>${body}</w:body></w:document>`,
    },
    {
      name: 'word/styles.xml',
      content: `${XML}<w:styles xmlns:w="${WORD}">${[1, 2, 3]
        .map((n) => `<w:style w:type="paragraph" w:styleId="Heading${n}"><w:name w:val="heading ${n}"/></w:style>`)
        .join('')}</w:styles>`,
    },
    {
      name: 'word/numbering.xml',
      content: `${XML}<w:numbering xmlns:w="${WORD}"><w:abstractNum w:abstractNumId="0"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/></w:lvl><w:lvl w:ilvl="1"><w:numFmt w:val="decimal"/></w:lvl></w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num></w:numbering>`,
    },
    {
      name: 'word/_rels/document.xml.rels',
      content: relations([
        ['rId1', 'styles', 'styles.xml'],
        ['rId2', 'numbering', 'numbering.xml'],
      ]),
    },
    ...(title === undefined
      ? []
      : [
          {
            name: 'docProps/core.xml',
            content: `${XML}<cp:coreProperties xmlns:cp="${PACKAGE}/metadata/core-properties" xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>${title}</dc:title></cp:coreProperties>`,
          },
        ]),
    ...more,
  ];
}

export function docxOf(docx: Docx): Buffer {
  return archiveOf(docxEntries(docx));
}

export function paragraph(text: string, properties = ''): string {
  return `<w:p><w:pPr>${properties}</w:pPr><w:r><w:t xml:space="preserve">${text}</w:t></w:r></w:p>`;
}

export interface Xlsx {
  /** `sheetData` rows as XML, by sheet name. */
  sheets: Record<string, string>;
  strings?: string[];
  contentType?: string;
  more?: ArchiveEntry[];
}

export function xlsxEntries({ sheets, strings = [], contentType, more = [] }: Xlsx): ArchiveEntry[] {
  const names = Object.keys(sheets);
  const main = contentType ?? 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml';
  const listed = names.map((name, index) => `<sheet name="${name}" sheetId="${index + 1}" r:id="rId${index + 1}"/>`);
  return [
    { name: '[Content_Types].xml', content: contentTypes({ '/xl/workbook.xml': main }) },
    { name: '_rels/.rels', content: relations([['rId1', 'officeDocument', 'xl/workbook.xml']]) },
    {
      name: 'xl/workbook.xml',
      content: `${XML}<workbook xmlns="${SHEETS}" xmlns:r="${OFFICE}"><sheets>${listed.join('')}</sheets></workbook>`,
    },
    {
      name: 'xl/_rels/workbook.xml.rels',
      content: relations([
        ...names.map((_, index) => [`rId${index + 1}`, 'worksheet', `worksheets/sheet${index + 1}.xml`] as const),
        ['rIdStrings', 'sharedStrings', 'sharedStrings.xml'],
        ['rIdStyles', 'styles', 'styles.xml'],
      ]),
    },
    ...names.map((name, index) => ({
      name: `xl/worksheets/sheet${index + 1}.xml`,
      content: `${XML}<worksheet xmlns="${SHEETS}"><sheetData>${sheets[name]}</sheetData></worksheet>`,
    })),
    {
      name: 'xl/sharedStrings.xml',
      content: `${XML}<sst xmlns="${SHEETS}">${strings.map((text) => `<si><t>${text}</t></si>`).join('')}</sst>`,
    },
    {
      // Style 1 is a date.
      name: 'xl/styles.xml',
      content: `${XML}<styleSheet xmlns="${SHEETS}"><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs></styleSheet>`,
    },
    ...more,
  ];
}

export function xlsxOf(xlsx: Xlsx): Buffer {
  return archiveOf(xlsxEntries(xlsx));
}

function contentTypes(parts: Record<string, string>): string {
  const overrides = Object.entries(parts).map(([name, type]) => `<Override PartName="${name}" ContentType="${type}"/>`);
  return `${XML}<Types xmlns="${PACKAGE}/content-types"><Default Extension="xml" ContentType="application/xml"/>${overrides.join('')}</Types>`;
}

function relations(list: readonly (readonly [id: string, type: string, target: string])[]): string {
  const items = list.map(
    ([id, type, target]) => `<Relationship Id="${id}" Type="${OFFICE}/${type}" Target="${target}"/>`,
  );
  return `${XML}<Relationships xmlns="${PACKAGE}/relationships">${items.join('')}</Relationships>`;
}
