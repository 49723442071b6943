import { markdownTable } from './markdown-table.ts';

/** The part of mammoth's document model used here; see `mammoth/lib/documents.js`. */
interface WordElement {
  type: string;
  children?: WordElement[];
  value?: string;
  styleId?: string | null;
  styleName?: string | null;
  numbering?: { level: string | number; isOrdered: boolean } | null;
  breakType?: string;
  checked?: boolean;
  altText?: string | null;
  noteType?: string;
  noteId?: string;
  colSpan?: number;
  rowSpan?: number;
}

interface WordNote {
  body: WordElement[];
}

interface WordDocument extends WordElement {
  notes: { resolve(reference: WordElement): WordNote | null };
}

/**
 * Converts a Word document to Markdown: headings, lists and tables, with notes at the end. Omits reviewers' comments.
 */
export function wordMarkdown(document: WordDocument): string {
  const references: WordElement[] = [];
  const blocks = blocksOf(document.children ?? [], references);
  // A note may refer to another, or to itself.
  const written = new Set<string>();
  for (const reference of references) {
    const key = `${reference.noteType}-${reference.noteId}`;
    if (written.has(key) || written.size >= MOST_NOTES) continue;
    written.add(key);
    const body = document.notes.resolve(reference)?.body ?? [];
    const note = blocksOf(body, references).map(({ text }) => text);
    if (note.length > 0) blocks.push({ kind: 'paragraph', text: `[${markOf(reference)}] ${note.join(' ')}` });
  }
  let markdown = '';
  let before: Block | null = null;
  for (const block of blocks) {
    if (before !== null) markdown += before.kind === 'item' && block.kind === 'item' ? '\n' : '\n\n';
    markdown += block.text;
    before = block;
  }
  // A search for the word would not find it with its optional hyphens.
  return markdown.replaceAll('\u00ad', '');
}

interface Block {
  kind: 'paragraph' | 'item';
  text: string;
}

const MOST_NOTES = 10_000;

function blocksOf(elements: readonly WordElement[], references: WordElement[]): Block[] {
  const blocks: Block[] = [];
  for (const element of elements) {
    const block = element.type === 'table' ? tableBlock(element, references) : paragraphBlock(element, references);
    if (block.text.trim() !== '') blocks.push(block);
  }
  return blocks;
}

function paragraphBlock(element: WordElement, references: WordElement[]): Block {
  const text = inlineText([element], references).trim();
  const level = headingLevel(element);
  if (text === '') return { kind: 'paragraph', text };
  if (level !== null) return { kind: 'paragraph', text: `${'#'.repeat(level)} ${text.replace(/\s+/g, ' ')}` };
  if (!element.numbering) return { kind: 'paragraph', text };
  const depth = Math.min(8, Math.max(0, Number(element.numbering.level) || 0));
  const mark = element.numbering.isOrdered ? '1.' : '-';
  return { kind: 'item', text: `${'  '.repeat(depth)}${mark} ${text.replace(/\s+/g, ' ')}` };
}

/** By the style's name, which is English in the file whatever the program's language. */
function headingLevel({ type, styleId, styleName }: WordElement): number | null {
  if (type !== 'paragraph') return null;
  if (/^title$/i.test(styleName ?? styleId ?? '')) return 1;
  const level = /^heading ?([1-6])$/i.exec(styleName ?? '')?.[1] ?? /^heading([1-6])$/i.exec(styleId ?? '')?.[1];
  return level === undefined ? null : Number(level);
}

/** A nested table becomes the text of its cell; merged cells appear in the first one. */
function tableBlock(table: WordElement, references: WordElement[]): Block {
  /** By column: how many rows a cell above still spans. */
  const covered: number[] = [];
  const rows = (table.children ?? []).map((row) => {
    const cells: string[] = [];
    const passCovered = () => {
      for (; (covered[cells.length] ?? 0) > 0; cells.push('')) covered[cells.length]! -= 1;
    };
    for (const cell of row.children ?? []) {
      passCovered();
      const text = blocksOf(cell.children ?? [], references).map((block) => block.text);
      const columns = Math.min(MOST_COLUMNS, Math.max(1, Number(cell.colSpan) || 1));
      for (let column = 0; column < columns; column += 1) {
        covered[cells.length] = Math.max(1, Number(cell.rowSpan) || 1) - 1;
        cells.push(column === 0 ? text.join(' ') : '');
      }
    }
    passCovered();
    return cells;
  });
  return { kind: 'paragraph', text: markdownTable(rows) };
}

const MOST_COLUMNS = 100;

function inlineText(elements: readonly WordElement[], references: WordElement[]): string {
  let text = '';
  for (const element of elements) {
    if (element.type === 'text') text += element.value ?? '';
    else if (element.type === 'tab') text += '\t';
    else if (element.type === 'break') text += element.breakType === 'line' ? '\n' : '\n\n';
    else if (element.type === 'checkbox') text += element.checked ? '[x] ' : '[ ] ';
    else if (element.type === 'image') text += element.altText ? `[${element.altText}]` : '';
    else if (element.type === 'noteReference') {
      references.push(element);
      text += `[${markOf(element)}]`;
    } else text += inlineText(element.children ?? [], references);
  }
  return text;
}

function markOf({ noteType, noteId }: WordElement): string {
  return `${noteType === 'endnote' ? 'endnote' : 'note'} ${noteId}`;
}
