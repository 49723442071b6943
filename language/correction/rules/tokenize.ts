import { COMMON_ENGLISH } from './language-words.ts';
import { keptLines, lineLead, match } from './lines.ts';
import { fixed, TOKENS_PER_SLICE, type Token, token } from './token.ts';

/** Ranges of the dictionary's words in a text, in order: [start, end). */
export type Spans = readonly (readonly [number, number])[];

/** Splits any text into tokens; joined they equal the text. Linear, because every expression has bounded look-ahead. */
export function* tokenize(text: string, fixedSpans: Spans = []): Generator<void, Token[]> {
  const tokens: Token[] = [];
  let at = 0;
  let isLineStart = true;
  let nextFixed = 0;
  while (at < text.length) {
    if (tokens.length % TOKENS_PER_SLICE === 0) yield;
    const span = fixedSpans[nextFixed];
    if (span !== undefined && span[0] <= at) {
      nextFixed++;
      if (span[1] <= at) continue;
      tokens.push(fixed(text.slice(at, span[1])));
      at = span[1];
      isLineStart = false;
      continue;
    }
    const found: Token = (isLineStart && span?.[0] !== at ? lineToken(text, at) : null) ?? inlineToken(text, at);
    if (span !== undefined && at + found.text.length > span[0]) found.text = text.slice(at, span[0]);
    tokens.push(found);
    at += found.text.length;
    isLineStart = found.kind === 'break';
  }
  return tokens;
}

function lineToken(text: string, at: number): Token | null {
  const block = keptLines(text, at);
  if (block > 0) return token('block', text.slice(at, at + block));
  const lead = lineLead(text, at);
  return lead > 0 ? token('lead', text.slice(at, at + lead)) : null;
}

function inlineToken(text: string, at: number): Token {
  const first = text[at]!;
  if (first === '\n' || first === '\u2028' || first === '\u2029') return token('break', first);
  if (first === '\r') return token('break', text[at + 1] === '\n' ? '\r\n' : first);
  if (SPACE.test(first)) return token('space', match(SPACES, text, at)!);
  const simple = match(SIMPLE_WORD, text, at);
  if (simple !== null) return token('word', simple);
  if (WORD_START.test(first) || first >= '\ud800') return wordToken(text, at) ?? markToken(text, at);
  return kept(text, at, first) ?? picture(text, at, first) ?? markToken(text, at);
}

const SPACE = /[^\S\r\n\u2028\u2029]/;
const SPACES = /[^\S\r\n\u2028\u2029]+/y;
/** Fast path for most words: only letters, and nothing after them that could form an address. */
const SIMPLE_WORD = /[A-Za-z]{1,40}(?=[\s,;!?)"]|$)/y;
const WORD_START = /[\p{L}\p{M}\p{N}_]/u;

function wordToken(text: string, at: number): Token | null {
  const address = match(URL, text, at);
  if (address !== null) return token('kept', trimmed(address));
  const email = match(EMAIL, text, at);
  if (email !== null) return token('kept', email);
  const initials = match(INITIALS, text, at);
  if (initials !== null) return token('word', initials);
  const dotted = match(DOTTED, text, at);
  if (
    dotted !== null &&
    !/^[\p{N}.]+$/u.test(dotted) &&
    !isTwoSentences(dotted, text.slice(at + dotted.length, at + dotted.length + 2))
  ) {
    return token('kept', trimmed(dotted));
  }
  const path = match(PATH, text, at) ?? match(IDENTIFIER, text, at);
  if (path !== null) return token('kept', trimmed(path));
  const number = match(NUMBER, text, at);
  if (number !== null) return token('number', number);
  const letters = match(WORD, text, at);
  return letters === null ? null : token('word', letters);
}

/** "done.Then" lacks a space; report.pdf and example.com do not. */
function isTwoSentences(dotted: string, behind: string): boolean {
  const [first = '', second = '', ...more] = dotted.split('.');
  if (more.length > 0 || !/^\p{L}[\p{L}\p{M}]+$/u.test(first)) return false;
  if (/^\p{Lu}\p{Ll}*$/u.test(second) && (/^\p{Ll}/u.test(first) || COMMON_ENGLISH.has(second.toLowerCase()))) {
    return !NAME_ENDINGS.has(second.toLowerCase());
  }
  if (STARTING.has(second) && /^[a-z]{3,}$/i.test(first) && /^ [a-z]/i.test(behind)) return true;
  return COMMON_ENGLISH.has(first.toLowerCase()) && COMMON_ENGLISH.has(second) && !NAME_ENDINGS.has(second);
}

/** Words that begin sentences, and are not file extensions, properties or domains. */
const STARTING = new Set(
  'the that they theyre we weve he she you youre if but there theres where what how did maybe please however ive unfortunately'.split(
    ' ',
  ),
);

/** Top-level domains and file extensions that are also words. */
const NAME_ENDINGS = new Set('in it is me to so no am be us at my as do js net py'.split(' '));

function kept(text: string, at: number, first: string): Token | null {
  switch (first) {
    case '`': {
      const code = match(CODE, text, at);
      return code === null ? null : token('kept', code);
    }
    case '!': {
      const image = match(IMAGE, text, at);
      return image === null ? null : token('kept', image);
    }
    case '@':
    case '#': {
      const handle = isOpen(text, at) ? match(HANDLE, text, at) : null;
      return handle === null ? null : token('kept', handle);
    }
    case '<': {
      const tag = match(TAG, text, at);
      // Tags are not words: "<b>hello</b>" begins a sentence with hello.
      return tag === null ? null : token(/^<[a-z][a-z\d+.-]*:/i.test(tag) ? 'kept' : 'mark', tag);
    }
    case ']': {
      const link = match(LINK_END, text, at);
      return link === null ? null : token('mark', link);
    }
    case '/':
    case '~':
    case '.': {
      const path = isOpen(text, at) ? (match(ROOTED_PATH, text, at) ?? match(DOT_FILE, text, at)) : null;
      return path === null ? null : token('kept', trimmed(path));
    }
    case '-':
    case '$':
    case '%':
    case '{': {
      const name = isOpen(text, at) ? match(VARIABLE, text, at) : null;
      return name === null ? null : token('kept', trimmed(name));
    }
    default:
      return null;
  }
}

function picture(text: string, at: number, first: string): Token | null {
  if (first >= '\u2000') {
    const emoji = match(EMOJI, text, at);
    return emoji === null ? null : token('picture', emoji);
  }
  const emoticon =
    EMOTICON_START.test(first) && isOpen(text, at) ? (match(EMOTICON, text, at) ?? match(SHORTCODE, text, at)) : null;
  return emoticon === null ? null : token('picture', emoticon);
}

function markToken(text: string, at: number): Token {
  const emoji = text[at]! < '\ud800' ? null : match(EMOJI, text, at);
  return emoji === null ? token('mark', match(MARKS, text, at)!) : token('picture', emoji);
}

/** Whether a token can start here: nothing before it could belong to it. */
function isOpen(text: string, at: number): boolean {
  return at === 0 || /[\s([{"'“‘*_~,;:!?…—–|>]/.test(text[at - 1]!);
}

/** Removes punctuation after an address, which belongs to the sentence. */
function trimmed(address: string): string {
  let end = address.length;
  const closes = !address.includes('(');
  while (end > 1 && (TRAILING.has(address[end - 1]!) || (closes && address[end - 1] === ')'))) end--;
  return address.slice(0, end);
}

const TRAILING = new Set('.,;:!?\'"’”*_~]}…।॥۔؟。！？，、');

const URL = /(?:[a-z][a-z\d+.-]{1,20}:\/\/|www\.|mailto:|tel:)[^\s<>"“”`]{2,4000}/iuy;
const EMAIL = /[\p{L}\p{N}._%+-]{1,64}@[\p{L}\p{N}-]{1,63}(?:\.[\p{L}\p{N}-]{1,63}){1,8}/uy;
/** e.g., U.S.A., a.m; not the I of "so do I." */
const INITIALS = /\p{L}(?:\.\p{L}){1,6}(?![\p{L}\p{M}\p{N}_@-])\.?|(?:Ph\.?D|[Pp][Hh]\.[Dd]|[BbMm]\.[Ss][Cc])\b\.?/uy;
const DOTTED =
  /[\p{L}\p{M}\p{N}_-]{1,64}(?:\.[\p{L}\p{M}\p{N}_-]{1,64}){1,8}(?:\/[^\s<>"“”`,;!?)]{0,2000})?(?<![.:])/uy;
const PATH = /[\p{L}\p{N}_-]{1,64}(?:[\\/][\p{L}\p{N}_.-]{1,64}){2,20}|[A-Za-z]:\\[^\s<>"“”`,;!?)]{1,400}/uy;
/** snake_case, camelCase, call() */
const IDENTIFIER = /[\p{L}\p{N}]{0,64}_[\p{L}\p{M}\p{N}_]{0,200}[\p{L}\p{M}\p{N}](?:\(\))?|[\p{L}\p{N}]{1,64}\(\)/uy;
const NUMBER = /\p{N}(?:[\p{L}\p{M}\p{N}]|[.,:/'’–-](?=\p{N})){0,200}(?:%|°[CF]?)?/uy;
const WORD = /[\p{L}\p{M}\p{N}_](?:[\p{L}\p{M}\p{N}\u200c\u00ad]|\u200d|['’](?=\p{L})){0,200}/uy;
const CODE = /``[^\n]{1,1000}?``|`[^`\n]+`/y;
const HANDLE = /[@#][\p{L}\p{N}_](?:[\p{L}\p{M}\p{N}_]|[.-](?=[\p{L}\p{N}])){0,100}/uy;
const TAG = /<(?:!--[^\n]{0,500}?--|\/?[a-z][^<>\n]{0,1000})>/iy;
const IMAGE = /!\[[^\]\n]{0,500}\]\([^\s()]{0,2000}(?: "[^"\n]{0,200}")?\)/y;
const LINK_END = /\](?:\([^\s()]{0,2000}(?: "[^"\n]{0,200}")?\)|\[[^[\]\n]{0,200}\])/y;
const ROOTED_PATH = /(?:~|\.{1,2})?\/[\p{L}\p{N}_.-]{1,64}(?:\/[\p{L}\p{N}_.-]{0,64}){0,30}(?<![.])/uy;
const DOT_FILE = /\.[a-z][a-z\d_-]{1,40}(?:\.[a-z\d_-]{1,40}){0,3}/y;
const VARIABLE =
  /--?[a-z][a-z\d-]{1,60}(?:=\S{0,200})?|\$\{?[A-Z_]{2,60}\}?|%[sdifjoO](?![\p{L}])|\{\{[^{}\n]{0,200}\}\}|\{[a-z_][a-z\d_]{0,60}\}/uy;
const EMOJI =
  /(?:\p{Regional_Indicator}{2}|[\p{Extended_Pictographic}--[©®™]](?:[\u{1f3fb}-\u{1f3ff}\ufe0f\u20e3]|\u200d\p{Extended_Pictographic}|[\u{e0020}-\u{e007f}]){0,30})/vy;
const EMOTICON = /(?:[:;=8][-'^]?[)(\]D[PpOo3|*\\/@$]{1,5}|<\/?3{1,5}|\^[_.-]?\^|[xX]D{1,5}|:'\()(?![\p{L}\p{N}/])/uy;
const EMOTICON_START = /[:;=8<^xX]/;
const SHORTCODE = /:[a-z][a-z\d_+-]{1,40}:/y;
const MARKS = /[!?]+|\.+|,+|;+|:+|-+|\*+|[\s\S]/uy;
