import { COMMON_ELSEWHERE, COMMON_ENGLISH } from './language-words.ts';
import { TOKENS_PER_SLICE, type Token } from './token.ts';

/**
 * Detects whether a text is English, by its script and its most common words. Short texts in plain Latin letters count
 * as English. Other languages only get the dictionary, and spaces and marks that are the same everywhere.
 */
export function* languageOf(tokens: readonly Token[]): Generator<void, { isEnglish: boolean; isFrench: boolean }> {
  let french = 0;
  let plain = 0;
  let other = 0;
  let english = 0;
  let elsewhere = 0;
  for (let index = 0; index < tokens.length; index++) {
    if (index % TOKENS_PER_SLICE === 0) yield;
    const { kind, text, isFixed } = tokens[index]!;
    // Dictionary words say nothing about the language.
    if (kind !== 'word' || isFixed) continue;
    if (!/^[\x20-\x7e’]+$/.test(text)) {
      if (ACCENTED_LATIN.test(text)) elsewhere += BORROWED.has(text.toLowerCase()) ? 0 : 0.5;
      else other += text.length;
      plain += ACCENTED_LATIN.test(text) ? text.length : 0;
    } else plain += text.length;
    if (text.length > 20) continue;
    const lower = text.toLowerCase().replaceAll('’', "'");
    if (FRENCH.has(lower)) french++;
    if (COMMON_ENGLISH.has(lower)) english++;
    else if (COMMON_ELSEWHERE.has(lower) && text !== text.toUpperCase()) elsewhere++;
    // l'eau, c'est, qu'il, dell'arte
    else if (/^(?:[cdjlmnst]|qu|dell|nell|all|un)'\p{L}{2,}/u.test(lower) && !lower.startsWith("d'you")) elsewhere++;
  }
  const isEnglish = plain > other && english >= elsewhere;
  return { isEnglish, isFrench: !isEnglish && french > 0 };
}

const ACCENTED_LATIN = /^[\p{Script=Latin}\p{M}\p{N}_'’]+$/u;
const BORROWED = new Set('café naïve résumé fiancé fiancée cliché déjà à piñata jalapeño façade crème'.split(' '));

/** French has a space before ; : ! ?, which must stay. */
const FRENCH = new Set(
  'le la les une des du et est sont dans pour avec que qui pas je tu elle nous vous ce cette mais ou au aux sur mon ma mes votre notre bonjour merci ça où moi toi'.split(
    ' ',
  ),
);
