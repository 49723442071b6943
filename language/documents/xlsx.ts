import readXlsxFile from 'read-excel-file/node';
import { TandemError } from '../../machines/errors.ts';
import type { DocumentSection, ReadDocument } from './document-reader.ts';
import { markdownTable } from './markdown-table.ts';
import type { OfficePackage } from './office-package.ts';
import { READING_LIMITS } from './reading-limits.ts';
import { storedPackage } from './stored-package.ts';
import { withoutComments } from './xml-tokens.ts';

/**
 * Reads each sheet as a table under its name. Formulas show their saved results: nothing is computed or fetched.
 * @throws TandemError `DOCUMENT_TOO_LARGE`; Error if the workbook is damaged
 */
export async function readXlsx({ parts, title, warnings }: OfficePackage): Promise<ReadDocument> {
  let unknown = 0;
  let cells = 0;
  const sheets = [...parts.keys()].filter((name) => SHEET.test(name));
  if (sheets.length > READING_LIMITS.sheets) throw tooLarge(`more than ${READING_LIMITS.sheets} sheets`);
  for (const name of sheets) {
    const { xml, cells: area, unknownResults } = filledCells(shortTokens(parts.get(name)!.toString()));
    cells += area;
    unknown += unknownResults;
    if (cells > READING_LIMITS.cells) throw tooLarge(`more than ${READING_LIMITS.cells} cells`);
    parts.set(name, Buffer.from(xml));
  }
  for (const [name, bytes] of parts) {
    if (XML.test(name) && !SHEET.test(name)) parts.set(name, Buffer.from(shortTokens(bytes.toString())));
  }
  const workbook = parts.get(WORKBOOK)?.toString() ?? '';
  const epochMs = FROM_1904.test(workbook) ? EPOCH_1904_MS : EPOCH_MS;
  // The library only knows "1". LibreOffice writes "true".
  if (epochMs === EPOCH_1904_MS) parts.set(WORKBOOK, Buffer.from(workbook.replace(FROM_1904, '$1"1"')));
  const read = await readXlsxFile(storedPackage(parts));
  const sections = read.map(({ sheet, data }, index): DocumentSection => {
    const rows = (data ?? []).map((row) => row.map((value) => cellText(value, epochMs)));
    return { heading: sheet, page: index + 1, text: markdownTable(rows) };
  });
  // Charts have no data, contrary to the library's types.
  const others = read.filter(({ data }) => (data as unknown) === undefined).length;
  if (others > 0) warnings.push(`${others} sheets that are charts were left out.`);
  if (unknown > 0) warnings.push(`${unknown} formulas were left out: their results are not in the file.`);
  return { format: 'xlsx', title, sections, pageCount: read.length, isOcr: false, warnings };
}

const WORKBOOK = 'xl/workbook.xml';
const FROM_1904 = /(<(?:[^\s<>/:]+:)?workbookPr\b[^<>]*\sdate1904\s*=\s*)["'](?:1|true)["']/;
const XML = /\.(?:xml|rels)$/;
const SHEET = /^xl\/worksheets\/[^/]+\.xml$/;

/**
 * Matches a cell without a value, perhaps with a formula: the library rejects a whole workbook for one. No pattern here
 * crosses the next tag, which keeps them linear.
 */
const WITHOUT_VALUE = /<c\b[^<>]*?(?:\/>|>(?:<f\b[^<>]*\/>|<f\b[^<>]*>[^<]*<\/f>)?(?:<v\s*\/>|<v>\s*<\/v>)?<\/c>)/g;
/** Matches a cell whose result is the empty text. Other cells with an empty `v` have no result. */
const EMPTY_TEXT = /^<c\b[^<>]*\st="str"[^<>]*>.*<v/s;
/** Matches a row without cells. LibreOffice writes the last row of the format, which would count as a full sheet. */
const WITHOUT_CELLS = /<row\b[^<>]*?(?:\/>|>\s*<\/row>)/g;
/** Matches the type of an error cell such as `#N/A`, which Excel shows but the library omits. */
const ERROR_TYPE = /(<(?:[^\s<>/:]+:)?c\b[^<>]*?\st=)"e"/g;
/** Matches a row or cell without a reference, which the library does not read. */
const UNPLACED = /<(?:[^\s<>/:]+:)?(?:row|c)\b(?![^<>]*\sr\s*=)/;
/** Matches the start of rows and cells, up to their attributes. */
const START = /<(?:[^\s<>/:]+:)?(row|c)\b(?=([^<>]*))/g;
/** Matches rows and cells with their reference, with any namespace prefix. */
const PLACED = /<(?:[^\s<>/:]+:)?(?:row|c)\b[^<>]*?\sr\s*=\s*(?:"([^"<]*)"|'([^'<]*)')/g;
const PLACE = /^([A-Z]{0,3})(\d{1,7})$/;
/** Limits of the format. */
const MOST_ROWS = 1_048_576;
const MOST_COLUMNS = 16_384;

/**
 * The library allocates rows and columns up to the furthest cell, so a single distant cell costs as much as a full
 * sheet.
 */
function filledCells(source: string) {
  let unknownResults = 0;
  const xml = (UNPLACED.test(source) ? withPlaces(source) : source)
    .replace(WITHOUT_VALUE, (cell) => {
      if (cell.includes('<f') && !EMPTY_TEXT.test(cell)) unknownResults += 1;
      return '';
    })
    .replace(WITHOUT_CELLS, '')
    .replace(ERROR_TYPE, '$1"str"');
  let rows = 0;
  let columns = 0;
  for (const [, quoted, singly] of xml.matchAll(PLACED)) {
    const [, column, row] = PLACE.exec(quoted ?? singly ?? '') ?? [];
    if (column === undefined) throw tooLarge('rows or columns beyond the last of a sheet');
    rows = Math.max(rows, Number(row));
    columns = Math.max(columns, columnNumber(column));
  }
  if (rows > MOST_ROWS || columns > MOST_COLUMNS) throw tooLarge('rows or columns beyond the last of a sheet');
  return { xml, unknownResults, cells: rows * Math.max(1, columns) };
}

/** Adds missing references: each row and cell follows the one before (ECMA-376 part 1, 18.3.1.4 and 18.3.1.73). */
function withPlaces(xml: string): string {
  let row = 0;
  let column = 0;
  return xml.replace(START, (start: string, name: string, attributes: string) => {
    const [, place = null] = /\sr\s*=\s*["']?([^"'<]*)/.exec(attributes) ?? [];
    const [, letters = '', digits = ''] = PLACE.exec(place ?? '') ?? [];
    if (name === 'row') {
      row = Number(digits) || row + 1;
      column = 0;
    } else {
      row = Number(digits) || row;
      column = letters === '' ? column + 1 : columnNumber(letters);
    }
    if (place !== null) return start;
    return `${start} r="${name === 'row' ? '' : columnLetters(column)}${row}"`;
  });
}

/** A cell has at most 32,767 characters, each up to 8 in XML (`_x000D_`). */
const MOST_TOKEN_LENGTH = 8 * 32_767;

function shortTokens(xml: string): string {
  try {
    return withoutComments(xml, MOST_TOKEN_LENGTH);
  } catch (cause) {
    throw new TandemError('DOCUMENT_TOO_LARGE', 'The workbook has a text or tag that is longer than a cell can be.', {
      cause,
    });
  }
}

function columnNumber(letters: string): number {
  let number = 0;
  for (const letter of letters) number = number * 26 + letter.charCodeAt(0) - 64;
  return number;
}

function columnLetters(number: number): string {
  let letters = '';
  for (let rest = number; rest > 0; rest = Math.floor((rest - 1) / 26)) {
    letters = String.fromCharCode(65 + ((rest - 1) % 26)) + letters;
  }
  return letters;
}

function cellText(value: unknown, epochMs: number): string {
  if (value === null || value === undefined) return '';
  if (value instanceof Date) return dateText(value, epochMs);
  // Results have seventeen digits in the file. Integers may be ids, which keep all of theirs.
  const isFraction = typeof value === 'number' && !Number.isInteger(value);
  return String(isFraction ? Number(value.toPrecision(SHOWN_DIGITS)) : value);
}

const SHOWN_DIGITS = 15;

function dateText(value: Date, epochMs: number): string {
  // The library rounds down to milliseconds, and a fraction of a day may already lie below its second.
  const shown = new Date(Math.round(value.getTime() / 1000) * 1000);
  if (Number.isNaN(shown.getTime())) return '';
  // Sheets have no time zone: the library returns the shown date and time as if in UTC.
  const [day = '', time = ''] = shown.toISOString().split('T');
  const sinceEpochMs = shown.getTime() - epochMs;
  // Sheets do not show day zero as a date, so its midnight is a time of day.
  if (time === '00:00:00.000Z' && sinceEpochMs !== 0) return day;
  return Math.abs(sinceEpochMs) < MOST_HOURS_MS ? hours(sinceEpochMs) : `${day}T${time.slice(0, 8)}`;
}

/** Day zero of a sheet. A value on it is a time of day or a duration. */
const EPOCH_MS = Date.UTC(1899, 11, 30);
const EPOCH_1904_MS = Date.UTC(1904, 0, 1);
const MOST_HOURS_MS = 60 * 86_400_000;

function hours(ms: number): string {
  const seconds = Math.abs(ms) / 1000;
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  return `${ms < 0 ? '-' : ''}${parts.map((part) => String(part).padStart(2, '0')).join(':')}`;
}

function tooLarge(what: string): TandemError {
  return new TandemError('DOCUMENT_TOO_LARGE', `The workbook has ${what}.`);
}
