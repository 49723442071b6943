import { shareOfWordsKept, wordsOf } from './words-kept.ts';

interface Asked {
  text: string;
  /** The text as the rules correct it. */
  byRules: string;
  /** Words of the dictionary that must stay. */
  words: readonly string[];
}

/** Share of the text's words that must be in the answer. */
const LEAST_WORDS_KEPT = 0.4;
/** Share of the answer's words that must come from the text. Rejects the text followed by, say, a poem. */
const LEAST_WORDS_OURS = 0.6;
/** A text of `from` words or more may not shrink below this share: the model skipped a part. */
const LEAST_LENGTHS = [
  { from: 12, share: 0.6 },
  { from: 40, share: 0.7 },
];
/** In texts of `LONG_WORDS` or more, the first and last `END_WORDS` are compared too, to detect a truncated answer. */
const LONG_WORDS = 16;
const END_WORDS = 6;
const LEAST_OF_END = 1 / 3;

/**
 * Returns a model's answer as the correction of the text, without the usual wrapping. Returns null if it cannot be a
 * correction: empty, much longer or shorter, about something else, or with addresses, code or numbers lost, invented or
 * swapped. Words are compared with the text and with its correction by rules, so that "thx" may become "thanks".
 */
export function checkedAnswer(answer: string, { text, byRules, words }: Asked): string | null {
  const bare = withoutStrangeCharacters(unwrapped(answer, text), text).trim();
  if (bare === '' || bare.length > mostCharactersFor(text)) return null;
  if (opensLikeAnswer(bare) && !opensLikeAnswer(text)) return null;
  const closing = CLOSING.exec(bare)?.[0] ?? '';
  if (shareOfWordsKept(closing, text) < LEAST_WORDS_OURS) return null;
  if (isShouted(bare) && !isShouted(text)) return null;
  if (!isLike(bare, text) && !isLike(bare, byRules)) return null;
  return keepsAll(bare, byRules, `${text}\n${byRules}\n${words.join('\n')}`) ? bare : null;
}

/** The longest answer accepted, in characters. Streaming stops beyond it. */
export function mostCharactersFor(text: string): number {
  return 2 * text.length + 100;
}

function isLike(answer: string, text: string): boolean {
  if (shareOfWordsKept(text, answer) < LEAST_WORDS_KEPT || shareOfWordsKept(answer, text) < LEAST_WORDS_OURS)
    return false;
  const asked = wordsOf(text);
  const came = wordsOf(answer);
  if (LEAST_LENGTHS.some(({ from, share }) => asked.length >= from && came.length < share * asked.length)) return false;
  if (Math.min(asked.length, came.length) < LONG_WORDS) return true;
  return [
    [asked, came],
    [asked.toReversed(), came.toReversed()],
  ].every(([ours = [], theirs = []]) => beginsLike(ours, theirs) && beginsLike(theirs, ours));
}

function isShouted(text: string): boolean {
  const capitals = text.match(/\p{Lu}/gu)?.length ?? 0;
  return capitals > 8 && capitals > (text.match(/\p{Ll}/gu)?.length ?? 0);
}

function beginsLike(words: readonly string[], others: readonly string[]): boolean {
  const near = new Set(others.slice(0, 2 * END_WORDS));
  return words.slice(0, END_WORDS).filter((word) => near.has(word)).length >= LEAST_OF_END * END_WORDS;
}

/** Whether the answer contains the same precious strings in the same order, and no others. */
function keepsAll(answer: string, byRules: string, known: string): boolean {
  for (const pattern of PRECIOUS) {
    const wanted = preciousOf(byRules, pattern);
    const found = preciousOf(answer, pattern);
    const allowed = new Set([...wanted, ...preciousOf(known, pattern)]);
    if (found.some((one) => !allowed.has(one))) return false;
    if (!isSame(onceEach(wanted), onceEach(found.filter((one) => wanted.includes(one))))) return false;
  }
  // "2" may become "two", but not "3".
  const said = preciousOf(answer, DIGIT);
  return hasAll(preciousOf(known, DIGIT), said) || hasAll(said, preciousOf(byRules, DIGIT));
}

function hasAll(all: readonly string[], some: readonly string[]): boolean {
  return some.every((one) => all.includes(one));
}

function preciousOf(text: string, pattern: RegExp): string[] {
  return (text.match(pattern) ?? []).map(withoutTrail);
}

/** Drops immediate repetitions, which may be mistakes in the text. */
function onceEach(list: readonly string[]): string[] {
  return list.filter((one, index) => one !== list[index - 1]);
}

function isSame(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((item, index) => item === other[index]);
}

const DIGIT = /(?<!\p{N})\p{N}(?!\p{N})/gu;

/** Addresses, code, handles, and numbers of two or more digits, whose separators may change. */
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

/** Removes a fence or quotes around the whole answer, unless the text has them. */
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

/** "Here is the corrected text:", a refusal, or the prompt's JSON object. */
function opensLikeAnswer(text: string): boolean {
  return (
    /^\W{0,4}(?:the )?correct(?:ed|ion)\b[^\n]{0,20}:/i.test(text) ||
    /^(?:\{\s*"|\[\s*\{|```|<\|)/.test(text) ||
    /^(?:(?:sure|certainly|of course|okay|ok)[,!. ]{1,3})?(?:here(?:['’]?s| is| are)|corrected (?:text|version)|the corrected|below is|i(?:['’]?ve| have) corrected|i(?:['’]?m| am) sorry,? but|i can(?:no|['’])?t|as an ai)\b/i.test(
      text,
    )
  );
}

/** "Let me know if you need anything else", and notes below the text. */
const CLOSING =
  /(?:let me know if|(?:i )?hope (?:this|that) helps|feel free to ask)[^\n]{0,80}$|\n\W{0,4}(?:notes?|explanations?|changes(?: made)?|corrections?(?: made)?|i(?:['’]?ve| have)? (?:corrected|made|fixed|changed))\b[^\n]{0,400}(?:\n[^\n]{0,400}){0,20}$/i;

/** Removes control, invisible and bidirectional characters that the text lacks. Line breaks stay. */
function withoutStrangeCharacters(answer: string, text: string): string {
  return answer
    .replace(/\r\n/g, '\n')
    .replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}]/gu, (one) => (one === '\n' || text.includes(one) ? one : ''));
}
