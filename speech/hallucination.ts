import type { UtteranceSummary } from '../machines/utterances.ts';
import { UNSPACED_SCRIPTS } from '../runtime/unspaced-scripts.ts';

/**
 * Detects invented sentences: engines loop, say more than fits into the time, or repeat the last sentence when there is
 * no speech. Independent of language: it compares the text with the amount and clarity of detected speech. Doubtful
 * text passes, because a lost "yes" is worse than a strange word.
 */
export function judgeHallucination({ text, confidence, summary, previousTexts }: Judged): HallucinationVerdict {
  const tokens = tokensOf(text);
  if (tokens.length === 0) return PASSED;
  const reason =
    (summary.speechMs < LEAST_SPEECH_MS && 'no_speech') ||
    (isSaidTooFast(text, summary) && 'too_fast') ||
    (isLoop(tokens) && 'repetition') ||
    (isGuessInNoise(confidence, summary) && 'guess_in_noise') ||
    (isEcho(text, summary, previousTexts) && 'echo') ||
    null;
  return reason === null ? PASSED : { rejected: true, reason };
}

interface Judged {
  text: string;
  /** Mean confidence of the words; null if the engine has none. */
  confidence: number | null;
  summary: UtteranceSummary;
  /** Earlier texts of this stream, oldest first. Only the last counts. */
  previousTexts: readonly string[];
}

export type HallucinationReason =
  /** The voice detector found almost no speech. */
  | 'no_speech'
  /** More text than can be spoken in the time. */
  | 'too_fast'
  /** The same words again and again. */
  | 'repetition'
  /** Low confidence, and noise almost as loud as speech. */
  | 'guess_in_noise'
  /** Repeats the previous sentence verbatim, in an utterance with hardly any speech. */
  | 'echo';

export type HallucinationVerdict = { rejected: false; reason: null } | { rejected: true; reason: HallucinationReason };

const PASSED: HallucinationVerdict = { rejected: false, reason: null };

/** Half of the shortest syllable. */
const LEAST_SPEECH_MS = 60;
/** Fast readers reach 25 letters a second. The slack allows for speech that a voice detector misses at both ends. */
const FASTEST_LETTERS_PER_S = 40;
const MISSED_SPEECH_MS = 400;

function isSaidTooFast(text: string, summary: UtteranceSummary): boolean {
  return spokenLength(text) > (FASTEST_LETTERS_PER_S * (summary.speechMs + MISSED_SPEECH_MS)) / 1000;
}

/** In letters. A syllabic or logographic character counts as the letters of its sound. */
function spokenLength(text: string): number {
  let length = 0;
  for (const character of text) {
    if (/[\p{Script=Han}\p{Script=Hangul}]/u.test(character)) length += 3;
    else if (/[\p{Script=Hiragana}\p{Script=Katakana}]/u.test(character)) length += 2;
    else if (/[\p{L}\p{N}]/u.test(character)) length += 1;
  }
  return length;
}

/**
 * How often a phrase of 1, 2, 3, ... words may repeat in a row: people do say "no" six times, but no sentence four
 * times.
 */
const MOST_REPEATS = [8, 5, 5, 3, 3, 3, 3, 3] as const;
/** Longer texts are also checked for irregular repetition. */
const LONG_TEXT_TOKENS = 24;

function isLoop(tokens: readonly string[]): boolean {
  return MOST_REPEATS.some((most, index) => repeatsInARow(tokens, index + 1) > most) || isMostlySaidBefore(tokens);
}

/** Most repetitions in a row of any phrase of `length` words. Ignores digits, which repeat in account numbers. */
function repeatsInARow(tokens: readonly string[], length: number): number {
  let most = 1;
  let same = 0;
  for (let index = length; index < tokens.length; index++) {
    const token = tokens[index]!;
    same = token === tokens[index - length] && !/^\p{N}+$/u.test(token) ? same + 1 : 0;
    most = Math.max(most, 1 + Math.floor(same / length));
  }
  return most;
}

/**
 * Whether most runs of four words occurred before. Unlike a compression ratio, this does not depend on the script, and
 * accepts dictated numbers, which consist of only ten words.
 */
function isMostlySaidBefore(tokens: readonly string[]): boolean {
  if (tokens.length < LONG_TEXT_TOKENS) return false;
  const runs = tokens.slice(3).map((_, index) => tokens.slice(index, index + 4).join(' '));
  return new Set(runs).size < runs.length / 2;
}

const GUESS_CONFIDENCE = 0.2;
const NOISY_SNR_DB = 5;

function isGuessInNoise(confidence: number | null, summary: UtteranceSummary): boolean {
  return confidence !== null && confidence < GUESS_CONFIDENCE && summary.snrDb !== null && summary.snrDb < NOISY_SNR_DB;
}

/** People do repeat shorter answers verbatim. */
const ECHO_LETTERS = 20;
const HARDLY_SPEECH_SHARE = 0.25;

function isEcho(text: string, summary: UtteranceSummary, previousTexts: readonly string[]): boolean {
  const previous = previousTexts.at(-1);
  if (previous === undefined || spokenLength(text) < ECHO_LETTERS) return false;
  const hasHardlySpeech = summary.speechMs < HARDLY_SPEECH_SHARE * (summary.endMs - summary.startMs);
  return hasHardlySpeech && tokensOf(text).join(' ') === tokensOf(previous).join(' ');
}

const TOKENS = new RegExp(`[${UNSPACED_SCRIPTS}]\\p{M}*|(?:(?![${UNSPACED_SCRIPTS}])[\\p{L}\\p{M}\\p{N}'’])+`, 'gu');

/** Words in lower case; in scripts without spaces, characters. */
function tokensOf(text: string): string[] {
  return text.normalize('NFKC').toLowerCase().match(TOKENS) ?? [];
}
