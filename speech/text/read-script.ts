import { cutClauses } from './clauses.ts';
import { findLanguage } from './languages/find-language.ts';
import type { SpokenLanguage } from './languages/language.ts';
import { givenWord, type ReadWord, readWords, withPunctuation } from './read-words.ts';
import { sayAs } from './say-as.ts';
import { NEUTRAL_PROSODY, type Script, type ScriptClause, type ScriptMark, type VoiceWish } from './script.ts';
import { isSsml, parseSsml } from './ssml.ts';
import type { SsmlPassage, SsmlReading, SsmlSpan } from './ssml-document.ts';
import { toToken } from './token.ts';
import { type WrittenWord, writtenWords } from './written-words.ts';

/**
 * Converts a text to a script for synthesis. Text that begins with `<speak` is SSML, any other is plain. Linear time.
 * @throws ScriptError if SSML is not in the subset of docs/speech-text.md
 */
export function readScript(text: string, options: ReadScriptOptions): Script {
  const wellFormed = text.toWellFormed();
  if (!isSsml(wellFormed)) {
    const language = findLanguage(options.language);
    const clauses = clausesOf([plainPassage(wellFormed)], () => language);
    return { clauses: isSilent(clauses) ? [] : clauses, characters: codePoints(wellFormed) };
  }
  const { passages, language } = parseSsml(wellFormed);
  const tags = options.voiceLanguages ?? [];
  const clauses = clausesOf(passages, (voice) =>
    findLanguage((voice === null ? language : tags[voice]) ?? options.language),
  );
  return { clauses: isSilent(clauses) ? [] : clauses, characters: charactersOf(passages) };
}

export interface ReadScriptOptions {
  /** BCP 47, such as `en-in`; SSML may override it. */
  language: string;
  /** Language of each voice of `voicesIn`, in order. */
  voiceLanguages?: readonly string[];
}

/**
 * Returns the voices requested in the markup. Pass their languages to `readScript`.
 * @throws ScriptError
 */
export function voicesIn(text: string): readonly VoiceWish[] {
  return isSsml(text) && /<(?:lang|voice)[\s/>]/.test(text) ? parseSsml(text.toWellFormed()).voices : [];
}

function plainPassage(text: string): SsmlPassage {
  const spans = [{ text, reading: null, marks: [] }];
  return { spans, prosody: NEUTRAL_PROSODY, voice: null, endMarks: [], pauseAfterMs: 0 };
}

function clausesOf(
  passages: readonly SsmlPassage[],
  languageOf: (voice: number | null) => SpokenLanguage,
): ScriptClause[] {
  const clauses: ScriptClause[] = [];
  let isFirst = true;
  for (const { spans, prosody, voice, endMarks, pauseAfterMs } of passages) {
    const { words, marks } = wordsOf(spans, languageOf(voice));
    marks.push(...endMarks.map((name) => ({ name, word: words.length })));
    const cut = cutClauses(words, { isFirst });
    if (cut.length === 0 && (pauseAfterMs > 0 || marks.length > 0)) cut.push([]);
    let start = 0;
    for (const [index, clause] of cut.entries()) {
      const isLast = index === cut.length - 1;
      const end = start + clause.length;
      clauses.push({
        words: clause.map(({ written, spoken, phonemes }) => ({ written, spoken, phonemes })),
        prosody,
        pauseAfterMs: isLast ? pauseAfterMs : 0,
        voice,
        marks: marks
          .filter(({ word }) => word >= start && (word < end || isLast))
          .map(({ name, word }) => ({ name, word: word - start })),
      });
      isFirst &&= clause.every(({ spoken }) => spoken === '');
      start = end;
    }
  }
  return clauses;
}

/** The edge of an element separates words, unless one side has only punctuation. A mark separates nothing. */
function wordsOf(spans: readonly SsmlSpan[], language: SpokenLanguage): { words: ReadWord[]; marks: ScriptMark[] } {
  const words: ReadWord[] = [];
  const marks: ScriptMark[] = [];
  let opening = '';
  for (const { text, reading, marks: given } of joined(spans)) {
    if (reading !== null) {
      marks.push(...given.map(({ name }) => ({ name, word: words.length })));
      const readings = givenWords(text, reading, language);
      if (readings.length > 0 && opening !== '') {
        readings[0] = { ...readings[0]!, written: `${opening}${readings[0]!.written}` };
      } else if (opening !== '') words.push(givenWord(opening, ''));
      words.push(...readings);
      opening = '';
      continue;
    }
    const closing = words.length > 0 ? (CLOSING.exec(text)?.[0] ?? '') : '';
    if (closing !== '') words.push(withPunctuation(words.pop()!, closing));
    const rest = text.slice(closing.length);
    opening = OPENING.exec(rest)?.[0] ?? '';
    const tokens = writtenWords(rest.slice(0, rest.length - opening.length));
    for (const { name, at } of given) {
      marks.push({ name, word: words.length + wordAt(rest, { tokens, at: at - closing.length }) });
    }
    words.push(
      ...readWords(
        tokens.map(({ written, endsParagraph }) => toToken(written, endsParagraph)),
        language,
      ),
    );
  }
  if (opening !== '') words.push(givenWord(opening, ''));
  return { words, marks };
}

/** Index of the word after an offset: the word that it splits, unless only punctuation remains. */
function wordAt(text: string, { tokens, at }: { tokens: readonly WrittenWord[]; at: number }): number {
  let left = text.slice(0, Math.max(0, at)).replace(/\s+/gu, '').length;
  for (const [index, { written }] of tokens.entries()) {
    const length = written.replace(/\s+/gu, '').length;
    if (left < length) return left > 0 && !/[\p{L}\p{N}]/u.test(written.slice(left)) ? index + 1 : index;
    left -= length;
  }
  return tokens.length;
}

const CLOSING = /^[.,;:!?…)\]}"'”’»।॥。，！？；：、]+/u;
const OPENING = /(?<=^|\s)[([{"'“‘«¿¡]+$/u;

/** The parser delivers character data in parts. */
function joined(spans: readonly SsmlSpan[]): SsmlSpan[] {
  const joinedSpans: SsmlSpan[] = [];
  for (const span of spans) {
    const last = joinedSpans.at(-1);
    if (last !== undefined && last.reading === span.reading) {
      const from = last.text.length;
      last.marks.push(...span.marks.map(({ name, at }) => ({ name, at: from + at })));
      last.text += span.text;
    } else joinedSpans.push({ ...span, marks: [...span.marks] });
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

/**
 * Counts the text without markup, with white space collapsed; an alias counts at least as much as the text it replaces.
 */
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
