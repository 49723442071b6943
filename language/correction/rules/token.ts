/** A stretch of a text. All tokens of a text, joined, are the text. */
export interface Token {
  kind: TokenKind;
  text: string;
  /** The dictionary put it there or wants it so: no other rule changes it, but for the capital of a sentence. */
  isFixed: boolean;
  /** What `lookup` found; null before it is asked. */
  found: string | null;
}

export type TokenKind =
  /** Letters, with the apostrophes and digits inside; also "e.g." and "U.S.". */
  | 'word'
  /** Begins with a digit: 5, 1,000.50, 10:30, 5km, 2moro. */
  | 'number'
  /** One punctuation mark, a run of the same one, or any other character. */
  | 'mark'
  | 'space'
  /** One line break. */
  | 'break'
  /** Stands in a sentence as a word does and is nobody's to change: addresses, code, names of files, handles. */
  | 'kept'
  /** Emoji and emoticons. */
  | 'picture'
  /** What opens a line: indentation, marker of a list or heading. */
  | 'lead'
  /** Whole lines that are no sentences: fenced code, tables, quotations, rulers. */
  | 'block';

export function token(kind: TokenKind, text: string): Token {
  return { kind, text, isFixed: false, found: null };
}

/** What the dictionary wants to stand there. */
export function fixed(text: string): Token {
  return { kind: 'word', text, isFixed: true, found: '' };
}

export const word = (text: string) => token('word', text);
export const mark = (text: string) => token('mark', text);

export function textOf(tokens: readonly Token[]): string {
  let text = '';
  for (const { text: piece } of tokens) text += piece;
  return text;
}

/** A part of a sentence that is no punctuation. */
export function isWordLike(at: Token | undefined): boolean {
  return at !== undefined && (at.kind === 'word' || at.kind === 'number' || at.kind === 'kept');
}

/** A word in lower case, its apostrophes straight, for looking it up; '' for anything else and for what is fixed. */
export function lookup(at: Token | undefined): string {
  if (at === undefined || at.kind !== 'word') return '';
  at.found ??= at.isFixed || at.text.length > 30 ? '' : at.text.toLowerCase().replaceAll('’', "'");
  return at.found;
}

/** Of a text, of which a rule changes tokens: yields now and then, so that nobody waits for a long text. */
export type Rule = (tokens: Token[]) => Generator<void, Token[]>;

/** So many tokens between two chances to let others run. */
export const TOKENS_PER_SLICE = 256;
