/** A stretch of a text. All tokens joined are the text. */
export interface Token {
  kind: TokenKind;
  text: string;
  /** Inserted or matched by the dictionary. Rules only capitalize it at the start of a sentence. */
  isFixed: boolean;
  /** Cached result of `lookup`; null before the first call. */
  found: string | null;
}

export type TokenKind =
  /** Letters, with apostrophes and digits inside; also "e.g." and "U.S.". */
  | 'word'
  /** Begins with a digit: 5, 1,000.50, 10:30, 5km, 2moro. */
  | 'number'
  /** One punctuation mark, a run of the same one, or any other character. */
  | 'mark'
  | 'space'
  | 'break'
  /** Acts as a word in a sentence but must not change: addresses, code, file names, handles. */
  | 'kept'
  /** Emoji and emoticons. */
  | 'picture'
  /** Start of a line: indentation, marker of a list or heading. */
  | 'lead'
  /** Whole lines that are not sentences: fenced code, tables, quotations, rulers. */
  | 'block';

export function token(kind: TokenKind, text: string): Token {
  return { kind, text, isFixed: false, found: null };
}

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

export function isWordLike(at: Token | undefined): boolean {
  return at !== undefined && (at.kind === 'word' || at.kind === 'number' || at.kind === 'kept');
}

/** A word for look-up, in lower case with straight apostrophes; '' for other tokens and fixed ones. */
export function lookup(at: Token | undefined): string {
  if (at === undefined || at.kind !== 'word') return '';
  at.found ??= at.isFixed || at.text.length > 30 ? '' : at.text.toLowerCase().replaceAll('’', "'");
  return at.found;
}

/** Changes the tokens of a text. Yields now and then, so that a long text does not block the thread. */
export type Rule = (tokens: Token[]) => Generator<void, Token[]>;

/** Tokens processed between two yields. */
export const TOKENS_PER_SLICE = 256;
