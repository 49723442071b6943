import { readScript } from '../../../speech/text/read-script.ts';

export function spokenOf(text: string, language: string): string {
  return readScript(text, { language })
    .clauses.map(({ words }) => said(words))
    .join(' | ');
}

function said(words: readonly { spoken: string }[]): string {
  return words
    .map(({ spoken }) => spoken)
    .filter((spoken) => spoken !== '')
    .join(' ');
}
