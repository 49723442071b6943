import type { DictionaryEntry } from './text-correction.ts';
import { shareOfWordsKept } from './words-kept.ts';

interface Asked {
  text: string;
  /** What rules make of it. */
  byRules: string;
  dictionary: readonly DictionaryEntry[];
}

/** Of the words that were asked about so many have to come back. */
const LEAST_WORDS_KEPT = 0.4;
/** Of the words that came so many have to be from there: the text with a poem behind it is none of its corrections. */
const LEAST_WORDS_OURS = 0.6;

/**
 * The answer of a model as a correction of the text, or null if it cannot be one: empty or much longer, about something else,
 * with addresses, code or numbers lost or made up. What models like to put around an answer is taken off. Words are
 * compared with the text and with what rules make of it, so that "thx" may become "thanks".
 */
export function checkedAnswer(answer: string, { text, byRules, dictionary }: Asked): string | null {
  const bare = withoutStrangeCharacters(unwrapped(answer, text), text).trim();
  if (bare === '' || bare.length > mostCharactersFor(text, dictionary)) return null;
  if (opensLikeAnswer(bare) && !opensLikeAnswer(text)) return null;
  const kept = Math.max(shareOfWordsKept(text, bare), shareOfWordsKept(byRules, bare));
  const ours = Math.max(shareOfWordsKept(bare, text), shareOfWordsKept(bare, byRules));
  if (kept < LEAST_WORDS_KEPT || ours < LEAST_WORDS_OURS) return null;
  const known = `${text}\n${byRules}\n${dictionary.map(({ replacement }) => replacement).join('\n')}`;
  return keepsAll(bare, byRules, known) ? bare : null;
}

/** More than that is no correction, and not waited for. */
export function mostCharactersFor(text: string, dictionary: readonly DictionaryEntry[]): number {
  const longest = dictionary.reduce((most, { replacement }) => Math.max(most, replacement.length), 0);
  return 2 * text.length + 100 + longest;
}

function keepsAll(answer: string, byRules: string, known: string): boolean {
  for (const pattern of PRECIOUS) {
    const wanted = byRules.match(pattern) ?? [];
    const found = new Set((answer.match(pattern) ?? []).map(withoutTrail));
    if (wanted.some((one) => !found.has(withoutTrail(one)))) return false;
    const allowed = new Set((known.match(pattern) ?? []).map(withoutTrail));
    for (const one of found) if (!allowed.has(one)) return false;
  }
  return true;
}

/** Addresses, code, handles, and numbers of two digits and more, whose separators may change. */
const PRECIOUS = [
  /(?:[a-z][a-z\d+.-]{1,20}:\/\/|www\.)[^\s<>"”`]{1,2000}/giu,
  /[\p{L}\p{N}._%+-]{1,64}@[\p{L}\p{N}-]{1,63}(?:\.[\p{L}\p{N}-]{1,63}){1,8}/giu,
  /\b[\p{L}\p{N}-]{1,63}\.(?:com|net|org|io|co|in|xyz|info|ru|cn|app|dev|top|link|biz)\b/giu,
  /`[^`\n]{1,2000}`/gu,
  /(?<![\p{L}\p{N}&])[@#][\p{L}\p{N}_]{1,100}/giu,
  /\p{N}{2,100}/gu,
];

function withoutTrail(address: string): string {
  return address.replace(/[.,;:!?'"’)\]}*_]{1,20}$/, '').toLowerCase();
}

/** A fence or quotes around all of it, which the text has not. */
function unwrapped(answer: string, text: string): string {
  let bare = answer.trim();
  const fenced = /^```[a-z]{0,20}\n([\s\S]*?)\n?```$/i.exec(bare)?.[1];
  if (fenced !== undefined && !text.startsWith('```')) bare = fenced.trim();
  for (const [open, close] of [
    ['"', '"'],
    ['“', '”'],
    ["'", "'"],
    ['«', '»'],
  ] as const) {
    if (!bare.startsWith(open) || !bare.endsWith(close) || bare.length < 2) continue;
    if (!text.startsWith(open) || !text.endsWith(close)) return bare.slice(1, -1).trim();
  }
  return bare;
}

/** "Here is the corrected text:", a refusal, or the object it was given. */
function opensLikeAnswer(text: string): boolean {
  return (
    /^(?:\{\s*"|\[\s*\{|```|<\|)/.test(text) ||
    /^(?:(?:sure|certainly|of course|okay|ok)[,!. ]{1,3})?(?:here(?:['’]?s| is| are)|corrected (?:text|version)|the corrected|i(?:['’]?m| am) sorry,? but|i can(?:no|['’])?t|as an ai)\b/i.test(
      text,
    )
  );
}

/** Controls, invisible ones and those that turn the direction, unless the text has them; its line breaks. */
function withoutStrangeCharacters(answer: string, text: string): string {
  return answer
    .replace(/\r\n/g, '\n')
    .replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/gu, (one) => (one === '\n' || text.includes(one) ? one : ''));
}
