import type { DocumentSection } from '../../language/documents/document-reader.ts';
import { firstCharacters } from '../../runtime/first-characters.ts';

/** Limit of an ingested text; a longer one would block the thread. */
const MOST_CHARACTERS = 100_000;

/** Longer heads of tables are not repeated. */
const MOST_HEAD_CHARACTERS = 4_000;

/**
 * Splits a document into parts that become separate memories. A part has sections under Markdown headings; only
 * sections that are too long are cut. Each piece of a table at the start has its head, without which its cells mean
 * little.
 */
export function documentParts(sections: readonly DocumentSection[]): string[] {
  const parts: string[] = [];
  let part = '';
  for (const { heading, text } of sections) {
    const above = heading === null ? '' : `## ${firstCharacters(heading, 500)}\n\n`;
    if (part !== '' && part.length + above.length + text.length + 2 > MOST_CHARACTERS) {
      parts.push(part);
      part = '';
    }
    let head = headOf(text);
    let rest = text;
    while (above.length + rest.length > MOST_CHARACTERS) {
      const end = cutBefore(rest, MOST_CHARACTERS - above.length);
      parts.push(above + rest.slice(0, end));
      // Tables of documents end at a blank line.
      if (rest.slice(0, end).includes('\n\n')) head = '';
      const left = rest.slice(end).trimStart();
      rest = left === '' ? '' : head + left;
    }
    if (rest.trim() !== '') part = part === '' ? above + rest : `${part}\n\n${above}${rest}`;
  }
  if (part !== '') parts.push(part);
  return parts;
}

/** The first two lines of a section that is a Markdown table; '' for others. */
function headOf(text: string): string {
  const head = /^\|[^\n]*\n\|[|: -]+\n/.exec(text)?.[0] ?? '';
  return head.length <= MOST_HEAD_CHARACTERS ? head : '';
}

/**
 * Finds a cut in the last quarter: at the end of a paragraph, else of a line or word. Without one, cuts between two
 * characters.
 */
function cutBefore(text: string, most: number): number {
  for (const separator of ['\n\n', '\n', ' ']) {
    const at = text.lastIndexOf(separator, most - separator.length);
    if (at > most * 0.75) return at + separator.length;
  }
  const code = text.charCodeAt(most);
  return code >= 0xdc00 && code <= 0xdfff ? most - 1 : most;
}
