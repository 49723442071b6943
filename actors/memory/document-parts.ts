import type { DocumentSection } from '../../language/documents/document-reader.ts';

/** As long as a text that is ingested may be: what is longer would hold the thread up in one piece. */
const MOST_CHARACTERS = 100_000;

/** The text of a document in parts, each a memory of its own: sections under their headings, as Markdown, none cut that fits. */
export function documentParts(sections: readonly DocumentSection[]): string[] {
  const parts: string[] = [];
  let part = '';
  for (const { heading, text } of sections) {
    const above = heading === null ? '' : `## ${heading.slice(0, 500)}\n\n`;
    if (part !== '' && part.length + above.length + text.length + 2 > MOST_CHARACTERS) {
      parts.push(part);
      part = '';
    }
    let rest = text;
    while (above.length + rest.length > MOST_CHARACTERS) {
      const end = cutBefore(rest, MOST_CHARACTERS - above.length);
      parts.push(above + rest.slice(0, end));
      rest = rest.slice(end).trimStart();
    }
    if (rest.trim() !== '') part = part === '' ? above + rest : `${part}\n\n${above}${rest}`;
  }
  if (part !== '') parts.push(part);
  return parts;
}

/** At the end of a paragraph, else of a line or word, in the last quarter; between two letters where there is none. */
function cutBefore(text: string, most: number): number {
  for (const separator of ['\n\n', '\n', ' ']) {
    const at = text.lastIndexOf(separator, most - separator.length);
    if (at > most * 0.75) return at + separator.length;
  }
  const code = text.charCodeAt(most);
  return code >= 0xdc00 && code <= 0xdfff ? most - 1 : most;
}
