import type { RecognisedWord, Recognition } from '../../../machines/utterances.ts';
import { markBoosted } from '../../boosted-words.ts';
import type { Keyword } from '../../recognizer.ts';
import { meanConfidence, type Span, timeWords } from '../timed-words.ts';
import { toLanguageCode } from '../whisper-languages.ts';
import type { LetterCase } from './hotwords.ts';
import type { SherpaResult } from './sherpa-result.ts';

/** The result for a part of the utterance. */
export interface RecognisedPiece extends Span {
  result: SherpaResult;
  /** The result without keywords; null if not computed, because no keyword was recognised. */
  unboosted: SherpaResult | null;
}

export interface PiecesOptions {
  /** As in `Recognition`. */
  model: string;
  languages: readonly string[];
  /** The requested language; null for detection. */
  language: string | null;
  keywords: readonly Keyword[];
  letterCase: LetterCase;
  /** Null without a punctuation model. */
  punctuate: ((text: string) => string) | null;
}

/** Joins the results of an utterance's parts, with punctuation. */
export function recognitionOfPieces(pieces: readonly RecognisedPiece[], options: PiecesOptions): Recognition {
  const language = options.language ?? languageOf(pieces, options.languages);
  const written = pieces.map((piece) => writeMarked(piece, options)).filter(({ text }) => text !== '');
  const words = written.flatMap((piece) => piece.words);
  return {
    text: written.map(({ text }) => text).join(UNSPACED.has(language) ? '' : ' '),
    words,
    language,
    // sherpa-onnx reports the language without a probability.
    languageProbability: null,
    confidence: meanConfidence(words),
    model: options.model,
  };
}

/** Interim result: without punctuation, which would flicker. */
export function hypothesisOf(
  piece: RecognisedPiece,
  letterCase: LetterCase,
): { text: string; words: RecognisedWord[] } {
  return writeOut(piece, { letterCase, punctuate: null });
}

/** Written without spaces between sentences. */
const UNSPACED: ReadonlySet<string> = new Set(['zh', 'ja', 'th', 'lo', 'km', 'my']);

function writeMarked(piece: RecognisedPiece, options: PiecesOptions): { text: string; words: RecognisedWord[] } {
  const written = writeOut(piece, options);
  if (piece.unboosted === null) return written;
  const unboosted = hypothesisOf({ ...piece, result: piece.unboosted }, options.letterCase).words;
  return { ...written, words: markBoosted(written.words, { unboosted, keywords: options.keywords }) };
}

function writeOut(
  { result, startMs, endMs }: RecognisedPiece,
  { letterCase, punctuate }: Pick<PiecesOptions, 'letterCase' | 'punctuate'>,
): { text: string; words: RecognisedWord[] } {
  // An upper-case model writes all words in capitals.
  const plain = letterCase === 'upper' ? result.text.toLowerCase() : result.text;
  const text = (punctuate === null || HAS_PUNCTUATION.test(plain) || plain === '' ? plain : punctuate(plain)).trim();
  if (result.segments.length === 0) return { text, words: timeWords(text, result.said, { startMs, endMs }) };
  const words = result.segments.flatMap((segment) =>
    timeWords(segment.text, UNTIMED, {
      startMs: Math.min(endMs, startMs + segment.startS * 1000),
      endMs: Math.min(endMs, startMs + segment.endS * 1000),
    }),
  );
  return { text, words };
}

/** Output of a model with its own punctuation. Apostrophes and hyphens are parts of words. */
const HAS_PUNCTUATION = /[.,?!;:。，？！、]/u;
const UNTIMED = { tokens: [], timestamps: [], durations: [], logProbabilities: [] };

/** As the model detected; else by script; else the model's first language. */
function languageOf(pieces: readonly RecognisedPiece[], languages: readonly string[]): string {
  const longest = pieces.reduce<RecognisedPiece | null>(
    (best, piece) => (best === null || piece.result.text.length > best.result.text.length ? piece : best),
    null,
  );
  const detected = toLanguageCode(longest?.result.language ?? '');
  if (detected !== null) return detected;
  const text = longest?.result.text ?? '';
  const looksLike = SCRIPTS.find(([code, script]) => languages.includes(code) && script.test(text))?.[0];
  const latin = languages.find((code) => !SCRIPTS.some(([scripted]) => scripted === code));
  return looksLike ?? (/\p{Script=Latin}/u.test(text) ? latin : undefined) ?? languages[0]!;
}

/** Kana before Han, which Japanese has too. */
const SCRIPTS: readonly (readonly [language: string, script: RegExp])[] = [
  ['ja', /[\p{Script=Hiragana}\p{Script=Katakana}]/u],
  ['zh', /\p{Script=Han}/u],
  ['ko', /\p{Script=Hangul}/u],
  ['ru', /\p{Script=Cyrillic}/u],
  ['ar', /\p{Script=Arabic}/u],
  ['hi', /\p{Script=Devanagari}/u],
  ['th', /\p{Script=Thai}/u],
];
