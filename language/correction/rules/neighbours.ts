import { lookup, type Token } from './token.ts';

/** The next word after only spaces, in lower case; '' if there is none. */
export function wordAfter(tokens: readonly Token[], at: number): string {
  return lookup(tokens[indexAfter(tokens, at)]);
}

/** The previous word before only spaces, in lower case; '' if there is none. */
export function wordBefore(tokens: readonly Token[], at: number): string {
  return tokens[at - 1]?.kind === 'space' ? lookup(tokens[at - 2]) : '';
}

/** Index of the token after the following space; an index past the end if no space follows. */
export function indexAfter(tokens: readonly Token[], at: number): number {
  return tokens[at + 1]?.kind === 'space' ? at + 2 : tokens.length;
}

/** Whether a line or the text ends after this token. */
export function endsLine(tokens: readonly Token[], at: number): boolean {
  const next = tokens[at + 1]?.kind === 'space' ? tokens[at + 2] : tokens[at + 1];
  return next === undefined || next.kind === 'break';
}
