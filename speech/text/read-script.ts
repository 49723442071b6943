import { cutClauses } from './clauses.ts';
import { findLanguage } from './languages/find-language.ts';
import type { SpokenLanguage } from './languages/language.ts';
import { givenWord, type ReadWord, readWords, withPunctuation } from './read-words.ts';
import { sayAs } from './say-as.ts';
import { NEUTRAL_PROSODY, type Script, type ScriptClause } from './script.ts';
import { isSsml, parseSsml, type SsmlPassage, type SsmlReading, type SsmlSpan } from './ssml.ts';
import { toToken } from './token.ts';
import { writtenWords } from './written-words.ts';

/**
 * Reads a text as somebody would who is going to speak it. Text that begins with `<speak` is SSML, any other is taken as
 * it is. Takes time in proportion to the text.
 * @param options.language BCP 47, such as `en-in`; SSML may name another
 * @throws ScriptError of SSML that is not the subset of docs/speech-text.md
 */
export function readScript(text: string, options: { language: string }): Script {
  const wellFormed = text.toWellFormed();
  if (!isSsml(wellFormed)) {
    const language = findLanguage(options.language);
    const clauses = clausesOf([plainPassage(wellFormed)], language);
    return { clauses: isSilent(clauses) ? [] : clauses, characters: codePoints(wellFormed) };
  }
  const { passages, language } = parseSsml(wellFormed);
  const clauses = clausesOf(passages, findLanguage(language ?? options.language));
  return { clauses: isSilent(clauses) ? [] : clauses, characters: charactersOf(passages) };
}

function plainPassage(text: string): SsmlPassage {
  return { spans: [{ text, reading: null }], prosody: NEUTRAL_PROSODY, pauseAfterMs: 0 };
}

function clausesOf(passages: readonly SsmlPassage[], language: SpokenLanguage): ScriptClause[] {
  const clauses: ScriptClause[] = [];
  let isFirst = true;
  for (const { spans, prosody, pauseAfterMs } of passages) {
    const cut = cutClauses(wordsOf(spans, language), { isFirst });
    if (cut.length === 0 && pauseAfterMs > 0) cut.push([]);
    for (const [index, words] of cut.entries()) {
      clauses.push({
        words: words.map(({ written, spoken, phonemes }) => ({ written, spoken, phonemes })),
        prosody,
        pauseAfterMs: index === cut.length - 1 ? pauseAfterMs : 0,
      });
      isFirst &&= words.every(({ spoken }) => spoken === '');
    }
  }
  return clauses;
}

/** The edge of an element parts words, unless there is only punctuation on one side of it. */
function wordsOf(spans: readonly SsmlSpan[], language: SpokenLanguage): ReadWord[] {
  const words: ReadWord[] = [];
  let opening = '';
  for (const { text, reading } of joined(spans)) {
    if (reading !== null) {
      const given = givenWords(text, reading, language);
      if (given.length > 0 && opening !== '') given[0] = { ...given[0]!, written: `${opening}${given[0]!.written}` };
      else if (opening !== '') words.push(givenWord(opening, ''));
      words.push(...given);
      opening = '';
      continue;
    }
    const closing = words.length > 0 ? (CLOSING.exec(text)?.[0] ?? '') : '';
    if (closing !== '') words.push(withPunctuation(words.pop()!, closing));
    const rest = text.slice(closing.length);
    opening = OPENING.exec(rest)?.[0] ?? '';
    const tokens = writtenWords(rest.slice(0, rest.length - opening.length));
    words.push(
      ...readWords(
        tokens.map(({ written, endsParagraph }) => toToken(written, endsParagraph)),
        language,
      ),
    );
  }
  if (opening !== '') words.push(givenWord(opening, ''));
  return words;
}

const CLOSING = /^[.,;:!?…)\]}"'”’»।॥。，！？；：、]+/u;
const OPENING = /(?<=^|\s)[([{"'“‘«¿¡]+$/u;

/** Character data comes in parts. */
function joined(spans: readonly SsmlSpan[]): SsmlSpan[] {
  const joinedSpans: SsmlSpan[] = [];
  for (const span of spans) {
    const last = joinedSpans.at(-1);
    if (last !== undefined && last.reading === span.reading) last.text += span.text;
    else joinedSpans.push({ ...span });
  }
  return joinedSpans;
}

function givenWords(text: string, reading: SsmlReading, language: SpokenLanguage): ReadWord[] {
  const written = writtenWords(text).map((word) => word.written);
  switch (reading.kind) {
    case 'say-as': {
      const spoken = sayAs(written, reading.interpretation, language);
      return together(written.map((word, index) => givenWord(word, spoken[index]!)));
    }
    case 'sub': {
      const tokens = writtenWords(reading.alias).map((word) => toToken(word.written));
      const alias = readWords(tokens, language).map(({ spoken }) => spoken);
      const spoken = alias.filter((word) => word !== '').join(' ');
      return together(written.map((word, index) => givenWord(word, index === 0 ? spoken : '')));
    }
    case 'phoneme': {
      const sounds = reading.ipa.split(' ');
      const areApart = sounds.length === written.length;
      const usual = readWords(
        written.map((word) => toToken(word)),
        language,
      );
      return together(
        written.map((word, index) => {
          if (areApart) return givenWord(word, usual[index]!.spoken || word, sounds[index]!);
          return index === 0 ? givenWord(word, usual[0]!.spoken || word, reading.ipa) : givenWord(word, '');
        }),
      );
    }
  }
}

function together(words: ReadWord[]): ReadWord[] {
  return words.map((word, index) => ({ ...word, joinsNext: index < words.length - 1 }));
}

function isSilent(clauses: readonly ScriptClause[]): boolean {
  return clauses.every(({ words }) => words.every(({ spoken, phonemes }) => spoken === '' && phonemes === null));
}

/** As of the same text without markup, white space made one; an alias counts as what it stands for at least. */
function charactersOf(passages: readonly SsmlPassage[]): number {
  const spans = passages.flatMap((passage) => joined(passage.spans));
  return codePoints(spans.map(countedOf).join('').replace(/\s+/gu, ' ').trim());
}

function countedOf({ text, reading }: SsmlSpan): string {
  const said = reading?.kind === 'sub' ? reading.alias : reading?.kind === 'phoneme' ? reading.ipa : '';
  return codePoints(said) > codePoints(text.trim().replace(/\s+/gu, ' ')) ? said : text;
}

function codePoints(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}
