import { lookup, type Token } from './token.ts';

/** The word behind one, only spaces between them, in lower case; '' where there is none. */
export function wordAfter(tokens: readonly Token[], at: number): string {
  return lookup(tokens[indexAfter(tokens, at)]);
}

/** The word before one, only spaces between them, in lower case; '' where there is none. */
export function wordBefore(tokens: readonly Token[], at: number): string {
  return tokens[at - 1]?.kind === 'space' ? lookup(tokens[at - 2]) : '';
}

/** Of the token behind the space that follows; that of no token where none follows. */
export function indexAfter(tokens: readonly Token[], at: number): number {
  return tokens[at + 1]?.kind === 'space' ? at + 2 : tokens.length;
}

/** A line or the text ends behind this token. */
export function endsLine(tokens: readonly Token[], at: number): boolean {
  const next = tokens[at + 1]?.kind === 'space' ? tokens[at + 2] : tokens[at + 1];
  return next === undefined || next.kind === 'break' || next.kind === 'block';
}
