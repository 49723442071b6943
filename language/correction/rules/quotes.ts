import { mark, type Rule, TOKENS_PER_SLICE, type Token } from './token.ts';

/** Closes a quotation at the end of a one-line paragraph that contains a single opening quote. */
export const closeQuotes: Rule = function* (tokens) {
  const out: Token[] = [];
  let opened: string | null = null;
  let others = 0;
  let linesOfParagraph = 0;
  for (let at = 0; at <= tokens.length; at++) {
    if (at % TOKENS_PER_SLICE === 0) yield;
    const here = tokens[at];
    if (here === undefined || here.kind === 'break') {
      const isAlone = linesOfParagraph === 0 && endsParagraph(tokens, at);
      if (opened !== null && others === 0 && isAlone && !/^["“]/.test(firstOfNext(tokens, at))) close(out, opened);
      linesOfParagraph = endsParagraph(tokens, at) ? 0 : linesOfParagraph + 1;
      if (tokens[at - 1]?.kind === 'break') linesOfParagraph = 0;
      opened = null;
      others = 0;
    } else if (here.kind === 'mark' && /^["“”]$/.test(here.text)) {
      const isOpening = here.text !== '”' && opensQuote(tokens, at);
      if (isOpening && opened === null) opened = here.text === '“' ? '”' : '"';
      else others++;
    }
    if (here !== undefined) out.push(here);
  }
  return out;
};

function close(out: Token[], quote: string): void {
  const end = out.at(-1)?.kind === 'space' ? out.length - 1 : out.length;
  out.splice(end, 0, mark(quote));
}

function opensQuote(tokens: readonly Token[], at: number): boolean {
  const before = tokens[at - 1];
  const isFree =
    before === undefined ||
    before.kind === 'space' ||
    before.kind === 'break' ||
    before.kind === 'lead' ||
    before.text === '(';
  return isFree && tokens[at + 1]?.kind === 'word';
}

function endsParagraph(tokens: readonly Token[], at: number): boolean {
  const next = tokens[at + 1];
  if (next === undefined || next.kind === 'break') return true;
  return (
    (next.kind === 'lead' || next.kind === 'space') &&
    (tokens[at + 2] === undefined || tokens[at + 2]!.kind === 'break')
  );
}

function firstOfNext(tokens: readonly Token[], at: number): string {
  let next = at;
  while (tokens[next]?.kind === 'break') next++;
  return tokens[next]?.text ?? '';
}
