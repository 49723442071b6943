import { SaxesParser } from 'saxes';
import { TandemError } from '../../machines/errors.ts';
import { unsupported } from './content-type.ts';
import { openPackage, type PackageParts } from './package-parts.ts';
import { withCdataAsText } from './xml-tokens.ts';

/** A validated Office file. */
export interface OfficePackage {
  format: 'docx' | 'xlsx';
  /** XML parts and relations by name, without embedded objects. */
  parts: Map<string, Buffer>;
  title: string | null;
  warnings: string[];
}

/** @throws TandemError `DOCUMENT_UNSUPPORTED`, `DOCUMENT_ENCRYPTED`, `DOCUMENT_TOO_LARGE`, `DOCUMENT_NOT_READABLE` */
export async function openOfficePackage(bytes: Buffer): Promise<OfficePackage> {
  const archive = await openPackage(bytes);
  const types = archive.take(TYPES);
  if (types === null) throw unsupported(otherArchive(archive));
  refuseDeclarations(types);
  const format = formatOf(types.toString());
  const parts = new Map([[TYPES, types]]);
  for (const name of archive.names) {
    if (name === TYPES || !LOOKED_AT[format].test(name)) continue;
    const part = archive.take(name)!;
    refuseDeclarations(part);
    parts.set(name, withCdataAsText(part));
  }
  return { format, parts, title: titleIn(parts.get(PROPERTIES)), warnings: warningsOf(archive, types.toString()) };
}

const TYPES = '[Content_Types].xml';
const PROPERTIES = 'docProps/core.xml';

/** Excludes names such as `__proto__`. */
const LOOKED_AT: Record<OfficePackage['format'], RegExp> = {
  docx: /^(_rels\/\.rels|docProps\/core\.xml|word\/(_rels\/)?[A-Za-z][A-Za-z0-9]*\.xml(\.rels)?)$/,
  xlsx: /^(_rels\/\.rels|docProps\/core\.xml|xl\/((worksheets\/)?(_rels\/)?[A-Za-z][A-Za-z0-9_-]*\.xml(\.rels)?))$/,
};

function formatOf(types: string): OfficePackage['format'] {
  if (/wordprocessingml\.(document|template)\.main\+xml|ms-word\.(document|template)\.macroEnabled/.test(types)) {
    return 'docx';
  }
  if (/spreadsheetml\.(sheet|template)\.main\+xml|ms-excel\.(sheet|template)\.macroEnabled/.test(types)) return 'xlsx';
  if (/presentationml|ms-powerpoint/.test(types)) throw unsupported('a presentation (.pptx)');
  if (/ms-excel\.sheet\.binary/.test(types)) throw unsupported('a binary workbook (.xlsb)');
  throw unsupported('an Office file of another kind');
}

function otherArchive({ names }: PackageParts): string {
  if (names.has('mimetype')) return 'an OpenDocument file or an e-book';
  if (names.has('META-INF/MANIFEST.MF')) return 'a Java program (.jar)';
  return 'a ZIP archive';
}

/**
 * Rejects document type declarations, which entity expansion attacks need. Office files contain none ([ECMA-376] part
 * 2, 8.2.5). Parsers read the parts as UTF-8, in which a declaration looks like this.
 */
function refuseDeclarations(part: Buffer): void {
  if (!/<!(doctype|entity)/i.test(part.toString('latin1'))) return;
  throw new TandemError('DOCUMENT_NOT_READABLE', 'Invalid Office document: it contains a document type declaration.');
}

function warningsOf({ names }: PackageParts, types: string): string[] {
  const all = [...names];
  const warnings: string[] = [];
  if (/macroEnabled/.test(types) || all.some((name) => /vbaProject\.bin$/i.test(name))) {
    warnings.push('The document has macros, which were neither run nor read.');
  }
  const pictures = all.filter((name) => /^(word|xl)\/media\//i.test(name)).length;
  if (pictures > 0) warnings.push(`${pictures} pictures in the document were not read.`);
  const embedded = all.filter((name) => /\/(embeddings|activeX)\//i.test(name)).length;
  if (embedded > 0) warnings.push(`${embedded} files that are embedded in the document were not read.`);
  return warnings;
}

/** Null for an invalid title, which must not make the document unreadable. */
function titleIn(properties: Buffer | undefined): string | null {
  if (properties === undefined) return null;
  let title = '';
  let isInside = false;
  const parser = new SaxesParser();
  parser.on('opentag', ({ name }) => {
    isInside = name === 'dc:title';
  });
  parser.on('text', (text) => {
    if (isInside) title += text;
  });
  parser.on('closetag', () => {
    isInside = false;
  });
  try {
    parser.write(properties.toString()).close();
  } catch {
    return null;
  }
  return title.trim() || null;
}
