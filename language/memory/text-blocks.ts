/** A unit of a text's structure, which is only cut if it is too long. */
export interface TextBlock {
  kind: 'heading' | 'paragraph' | 'list' | 'table' | 'code' | 'turn';
  /** Its lines, without empty ones around them. */
  text: string;
  /** Heading level 1 to 6; 0 for other blocks. */
  level: number;
  /** A heading's text, or a turn's speaker with any prefix; '' for other blocks. */
  label: string;
}

/**
 * Splits a text into blocks, in order: Markdown headings, lists, tables and fenced code; turns of a dialogue (each
 * `Agent: ...` line begins one); paragraphs between empty lines. Every non-empty line is in exactly one block. Linear
 * time. Undefined marks a point where the caller may let other work run.
 */
export function* textBlocks(text: string): Generator<TextBlock | undefined, void> {
  let open: OpenBlock | null = null;
  let linesSincePause = 0;
  for (const line of linesOf(text)) {
    if (++linesSincePause === LINES_BETWEEN_PAUSES) {
      linesSincePause = 0;
      yield undefined;
    }
    if (open?.fence) {
      open.lines.push(line);
      if (closesFence(line, open.fence)) {
        yield closed(open);
        open = null;
      }
      continue;
    }
    if (line.trim() === '') {
      if (open) yield closed(open);
      open = null;
      continue;
    }
    const begun = beginning(line, open);
    if (begun === null) {
      open!.lines.push(line);
      continue;
    }
    if (open) yield closed(open);
    open = begun;
    if (begun.kind === 'heading') {
      yield closed(begun);
      open = null;
    }
  }
  if (open) yield closed(open);
}

const LINES_BETWEEN_PAUSES = 200;
/** The first letters decide how a line begins; the rest may be long. */
const BEGINNING_LENGTH = 160;
const LONGEST_LABEL = 120;

interface OpenBlock {
  kind: TextBlock['kind'];
  lines: string[];
  level: number;
  label: string;
  /** The closing fence of code. */
  fence: string | null;
}

function closed({ kind, lines, level, label }: OpenBlock): TextBlock {
  return { kind, text: lines.join('\n'), level, label };
}

/** The block that a line begins; null if it continues the open one. */
function beginning(line: string, open: OpenBlock | null): OpenBlock | null {
  const start = line.slice(0, BEGINNING_LENGTH);
  const block = { lines: [line], level: 0, label: '', fence: null };
  const fence = /^ {0,3}(`{3,}|~{3,})/.exec(start)?.[1];
  if (fence !== undefined) return { ...block, kind: 'code', fence };
  const hashes = /^ {0,3}(#{1,6})[ \t]/.exec(start)?.[1];
  if (hashes !== undefined) {
    const label = line.trimStart().slice(hashes.length).trim().slice(0, LONGEST_LABEL).trim();
    return { ...block, kind: 'heading', level: hashes.length, label };
  }
  if (/^\s*\|/.test(start)) return open?.kind === 'table' ? null : { ...block, kind: 'table' };
  if (/^\s{0,20}(?:[-*+•]|\d{1,9}[.)])\s/.test(start)) return open?.kind === 'list' ? null : { ...block, kind: 'list' };
  const label = SPEAKER.exec(start)?.[0];
  if (label !== undefined) return { ...block, kind: 'turn', label: label.trim() };
  if (open === null || open.kind === 'table') return { ...block, kind: 'paragraph' };
  return null;
}

/** `Agent:`, `[00:12] Dr. Rao:`; a URL has no space after its colon. */
const SPEAKER = /^(?:\[[^\]\n]{1,24}\] ?)?\p{L}[\p{L}\p{M}\p{N}._' -]{0,38}:(?=\s+\S)/u;

function closesFence(line: string, fence: string): boolean {
  const trimmed = line.trim();
  return trimmed.length >= fence.length && trimmed === fence[0]!.repeat(trimmed.length);
}

/** Without line ends of any system. */
function* linesOf(text: string): Generator<string, void> {
  let start = 0;
  while (start <= text.length) {
    const end = text.indexOf('\n', start);
    const line = text.slice(start, end === -1 ? text.length : end);
    yield line.endsWith('\r') ? line.slice(0, -1) : line;
    if (end === -1) return;
    start = end + 1;
  }
}
