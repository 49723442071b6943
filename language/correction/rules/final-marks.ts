import type { FindMailLine } from './mail-lines.ts';
import { isQuestion } from './questions.ts';
import { FINAL_MARK, type Sentence, sentencesOf } from './sentences.ts';
import { mark, type Rule, TOKENS_PER_SLICE, type Token } from './token.ts';

interface FinalMarks {
  isEnglish: boolean;
  /** A message may omit the final full stop, but not the question mark. */
  isMessage: boolean;
  /** Finds lines of a mail that are not sentences. */
  mailLineAt: FindMailLine;
}

/**
 * Adds a missing final mark to a line's last sentence. In English, replaces the full stop after a clear question by a
 * question mark. Skips list items, headings, web addresses, emoji, and lines that end in another mark.
 */
export function addFinalMarks({ isEnglish, isMessage, mailLineAt }: FinalMarks): Rule {
  return function* (tokens) {
    const behind = new Map<number, string>();
    const instead = new Set<number>();
    for (const [index, sentence] of (yield* sentencesOf(tokens, mailLineAt)).entries()) {
      if (index % TOKENS_PER_SLICE === 0) yield;
      if (sentence.opens === 'heading' || sentence.opens === 'item' || mailLineAt(sentence.first) !== null) continue;
      if (sentence.isEnded) {
        const stop = isEnglish ? fullStopOf(tokens, sentence) : -1;
        if (stop >= 0 && isQuestion(tokens, sentence)) instead.add(stop);
        continue;
      }
      const place = placeOf(tokens, sentence);
      if (place < 0) continue;
      const final = markFor(tokens, sentence, { isEnglish, isMessage });
      if (final !== null) behind.set(place, final);
    }
    if (behind.size + instead.size === 0) return tokens;
    const out: Token[] = [];
    for (const [at, here] of tokens.entries()) {
      if (at % TOKENS_PER_SLICE === 0) yield;
      out.push(instead.has(at) ? mark('?') : here);
      const final = behind.get(at);
      if (final !== undefined) out.push(mark(final));
    }
    return out;
  };
}

/** Index of the token before the mark; -1 for no mark. The mark goes inside quotation marks and outside brackets. */
function placeOf(tokens: readonly Token[], { first, last, from, to }: Sentence): number {
  const { kind, text } = tokens[last]!;
  if (kind === 'kept' && /:\/\/|^www\.|^!\[/i.test(text)) return -1;
  let place = last;
  for (let at = last + 1; at < to; at++) {
    const here = tokens[at]!;
    if (here.kind === 'space') continue;
    // Inside "quotes", as in American English; 'these' may be code.
    if (BLOCK_END.test(here.text)) return -1;
    if (/^[)\]%*_~'’]+$|^<\/|^\]\(/.test(here.text)) place = at;
    else if (!/^["”]$/.test(here.text)) return -1;
  }
  // (A sentence in brackets has its mark inside.)
  const isBracketed = tokens[place]!.text === ')' && tokens.slice(from, first).some(({ text: piece }) => piece === '(');
  return isBracketed ? last : place;
}

/** Closing tag of an HTML block element. */
const BLOCK_END = /^<\/(?:p|div|li|h[1-6]|t[dh]|title|button|label|option|blockquote|body|html)>$/i;

function fullStopOf(tokens: readonly Token[], { last, to }: Sentence): number {
  const isPlain = tokens[last + 1]?.text === '.' && tokens[last + 1]!.kind === 'mark' && last + 1 < to;
  return isPlain && tokens[last]!.kind === 'word' ? last + 1 : -1;
}

function markFor(
  tokens: readonly Token[],
  sentence: Sentence,
  { isEnglish, isMessage }: { isEnglish: boolean; isMessage: boolean },
): string | null {
  if (isEnglish) return isQuestion(tokens, sentence) ? '?' : isMessage ? null : '.';
  if (isMessage || mayAsk(tokens, sentence)) return null;
  const { text } = tokens[sentence.last]!;
  if (HAS_NO_FULL_STOP.test(text)) return null;
  for (const [script, final] of FINAL_MARKS) if (script.test(text)) return final;
  return '.';
}

/** Whether a sentence in another language may be a question: it contains such a word. */
function mayAsk(tokens: readonly Token[], { first, last }: Sentence): boolean {
  for (let at = first; at <= last; at++) {
    const { kind, text } = tokens[at]!;
    if (kind === 'word' && text.length < 15 && ASKING.has(text.toLowerCase())) return true;
    if (at === first && ASKING_FIRST.has(text.toLowerCase())) return true;
    if (kind === 'word' && ASKING_UNSPACED.test(text)) return true;
    // Verb before person: kommst du.
    if (at === first + 2 && kind === 'word' && INVERTED.has(text)) return true;
    if (kind === 'mark' && /[¿?]/.test(text)) return true;
  }
  return false;
}

const ASKING = new Set(
  `que qué como cómo cuando cuándo donde dónde quien quién cual cuál cuanto cuánto comment pourquoi quand où qui quel quelle
  combien est-ce allez-vous was wie wo wer wann warum welche wieso che come quando dove chi quale perché
  onde quem qual quanto porque kya kaise kahan kab kaun kyun kyu kitna क्या कैसे कहाँ कहां कब कौन क्यों कितना कितने कैसा कैसी
  كيف ماذا هل أين متى لماذا من كم ما apa bagaimana kenapa wat hoe waar wie waarom vad hur var vem ne nasıl nerede kto co jak gdzie
  что как где когда кто почему сколько ли কি কেন কোথায় কবে என்ன எப்படி எங்கே ఏమి ఎలా ఎక్కడ`.split(/\s+/),
);
const INVERTED = new Set('du ihr er sie es wir ich tú usted você je jij u ni ty on'.split(' '));
/** Verbs that make a question at the start of a sentence. */
const ASKING_FIRST = new Set(
  'ist sind hast haben kann kannst können hat avez-vous as-tu est-ce es son está tienes puedes is heb kun'.split(' '),
);
const ASKING_UNSPACED =
  /[吗嗎呢哪谁誰几幾]|什么|什麼|怎么|怎麼|为什|何|どこ|だれ|いつ|なぜ|どう|か$|까$|뭐|어디|언제|누구|왜/u;

/** By the script of the last word. */
const FINAL_MARKS: readonly (readonly [RegExp, string])[] = [
  [/[\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Oriya}\p{Script=Gurmukhi}]/u, '।'],
  [/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]/u, '。'],
  [/[ٹڈڑںےہ]/u, '۔'],
];

/** Thai, Lao, Khmer, Burmese and Tibetan end sentences without a mark. */
const HAS_NO_FULL_STOP = /[\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}\p{Script=Tibetan}]/u;

/** Reduces "!!!" to one mark in a professional tone, and "?!?!" to one of each. */
export const calmMarks: Rule = function* (tokens) {
  for (const [at, here] of tokens.entries()) {
    if (at % TOKENS_PER_SLICE === 0) yield;
    if (here.kind !== 'mark' || here.text.length < 2 || !FINAL_MARK.test(here.text) || here.text.startsWith('.'))
      continue;
    tokens[at] = mark((here.text.includes('?') ? '?' : '') + (here.text.includes('!') ? '!' : ''));
  }
  return tokens;
};
