/** A painted piece of text; lengths in points, y upwards. */
export interface TextRun {
  text: string;
  x: number;
  y: number;
  width: number;
  /** Font size. */
  size: number;
  endsLine: boolean;
  font?: string;
}

interface Line {
  /** Pieces of the line, joined once it is complete. */
  pieces: string[];
  /** Whether the last piece ends in a blank. */
  isOpen: boolean;
  text: string;
  x: number;
  y: number;
  endX: number;
  size: number;
  /** Font of the first piece, and whether the whole line uses it. */
  font: string | undefined;
  isOneFont: boolean;
  isRow: boolean;
  /** Stretches without a gap wide enough to separate two cells. */
  cells: { x: number; endX: number }[];
}

/**
 * Joins the text of a page into paragraphs, in painting order, which is reading order for most programs. Rejoins
 * hyphenated words.
 */
export function pageText(runs: readonly TextRun[]): string {
  const lines = linesOf(runs);
  const pitch = pitchOf(lines);
  const endX = lines.reduce((most, line) => Math.max(most, line.endX), 0);
  const startX = lines.reduce((least, line) => Math.min(least, line.x), Number.POSITIVE_INFINITY);
  let text = '';
  let paragraph: string[] = [];
  for (const [index, line] of lines.entries()) {
    const before = lines[index - 1];
    if (before !== undefined && beginsParagraph(line, before, { pitch, columnWidth: endX - startX })) {
      const isNext = (line.isRow && before.isRow) || (isItem(line.text) && isItem(paragraph[0] ?? ''));
      text += `${joinLines(paragraph)}\n${isNext ? '' : '\n'}`;
      paragraph = [];
    }
    paragraph.push(line.text);
  }
  return text + joinLines(paragraph);
}

/** Joins the lines of one paragraph. */
export function joinLines(lines: readonly string[]): string {
  const words: string[] = [];
  let before = '';
  for (const line of lines.map((one) => one.trim().replace(/\s+/g, ' '))) {
    if (line === '') continue;
    const end = before.slice(-4);
    const isSplit = SOFT_HYPHEN.test(end) || (HYPHEN.test(end) && /^\p{Ll}/u.test(line));
    if (isSplit) words.push(words.pop()!.slice(0, -1));
    else if (before !== '') words.push(' ');
    words.push(line);
    before = line;
  }
  return words.join('').replaceAll('\u00ad', '');
}

const SOFT_HYPHEN = /\u00ad$/;
/** After a letter: a dash between words has a space before it. */
const HYPHEN = /\p{L}[-\u2010]$/u;

function linesOf(runs: readonly TextRun[]): Line[] {
  const lines: Line[] = [];
  let line: Line | null = null;
  for (const run of runs) {
    if (line !== null && Math.abs(run.y - line.y) > Math.max(line.size, run.size) / 2) line = null;
    if (line === null) {
      if (run.text.trim() === '') continue;
      const { x, y, size, font } = run;
      line = {
        pieces: [],
        isOpen: true,
        text: '',
        x,
        y,
        endX: x,
        size,
        font,
        isOneFont: true,
        isRow: false,
        cells: [],
      };
      lines.push(line);
    }
    const gap = run.x - line.endX;
    if (run.text.trim() !== '') {
      if (run.font !== line.font) line.isOneFont = false;
      addToCells(line.cells, run);
      // Text far from its list marker is still an item.
      if (gap > run.size * CELL_GAP && (line.pieces.length > 2 || !MARK.test(line.pieces.join('')))) line.isRow = true;
    }
    const isApart = gap > run.size * WORD_GAP || gap < -run.size;
    if (isApart && !line.isOpen && !/^\s/.test(run.text)) line.pieces.push(' ');
    line.pieces.push(run.text);
    if (run.text !== '') line.isOpen = /\s$/.test(run.text);
    // A blank as wide as a gap counts as a gap.
    if (run.text.trim() !== '' || run.width < run.size) line.endX = run.x + run.width;
    if (run.text.trim() !== '') line.size = Math.max(line.size, run.size);
    if (run.endsLine) line = null;
  }
  for (const each of lines) each.text = each.pieces.join('');
  const written = lines.filter(({ text }) => text.trim() !== '');
  for (const [index, each] of written.entries()) {
    const before = written[index - 1];
    if (before !== undefined && areRows(before, each)) {
      before.isRow = true;
      each.isRow = true;
    }
  }
  return written;
}

function addToCells(cells: Line['cells'], { x, width, size }: TextRun): void {
  const last = cells.at(-1);
  if (last === undefined || x - last.endX > size * NARROW_CELL_GAP || x < last.x) cells.push({ x, endX: x + width });
  else last.endX = Math.max(last.endX, x + width);
}

/** Whether the cells of two lines are aligned in the same columns, left or right. */
function areRows(one: Line, other: Line): boolean {
  if (one.cells.length < 2 || one.cells.length !== other.cells.length) return false;
  const tolerance = one.size * COLUMN_TOLERANCE;
  const isNear = (a: number, b: number) => Math.abs(a - b) <= tolerance;
  return one.cells.every((cell, index) => {
    const { x, endX } = other.cells[index]!;
    return isNear(cell.x, x) || isNear(cell.endX, endX);
  });
}

/** In font heights. */
const WORD_GAP = 0.2;
const CELL_GAP = 1.5;
/** Justified text also has such gaps between words, so two lines with the same columns are required. */
const NARROW_CELL_GAP = 0.6;
const COLUMN_TOLERANCE = 0.15;
const PARAGRAPH_GAP = 1.35;

/** Median line distance; 0 if there are no lines. */
function pitchOf(lines: readonly Line[]): number {
  const pitches = lines.slice(1).map((line, index) => lines[index]!.y - line.y);
  const down = pitches.filter((pitch) => pitch > 0).sort((a, b) => a - b);
  return down[Math.floor(down.length / 2)] ?? 0;
}

function beginsParagraph(
  line: Line,
  before: Line,
  { pitch, columnWidth }: { pitch: number; columnWidth: number },
): boolean {
  if (isItem(line.text)) return true;
  if (Math.abs(line.size - before.size) > before.size * 0.15) return true;
  const drop = before.y - line.y;
  const endsSentence = /[.!?:;"'”’)]\s*$/.test(before.text);
  // A jump upwards starts the next column, where a sentence may continue.
  if (drop < 0) return endsSentence;
  const usual = Math.max(Math.min(pitch, before.size * 2), before.size);
  if (drop > usual * PARAGRAPH_GAP) return true;
  const isShort = before.endX - before.x < columnWidth * 0.75;
  if (line.isRow && before.isRow) return true;
  if (isShort && before.isOneFont && before.font !== line.font) return true;
  const isIndented = line.x - before.x > line.size * 0.8;
  return endsSentence && (isShort || isIndented);
}

const MARK = /^\s*(?:[-•‣◦▪–*]|\(?(?:\d{1,3}|[a-z])[.)])\s*$/;

function isItem(text: string): boolean {
  return /^\s*(?:[-•‣◦▪–*]|\(?(?:\d{1,3}|[a-z])[.)])\s+\S/.test(text);
}
