import type { DictionaryEntry } from '../text-correction.ts';
import { inCaseOf } from './letter-case.ts';
import { fixed, TOKENS_PER_SLICE, type Token, textOf } from './token.ts';
import { tokenize } from './tokenize.ts';

/** Puts the dictionary's words into a text; what it put there, or found to stand there already, is `isFixed`. */
export type ApplyDictionary = (tokens: Token[]) => Generator<void, Token[]>;

/**
 * A term is matched as whole words, whatever white space there is between them, and the longest first. Case is of no
 * account unless the term has a capital behind the first letter of a word (iPhone, IT): then it has to stand there
 * exactly so. A replacement keeps its capitals; one that is all in lower case takes those of what
 * it replaces, unless that had to be written just so. Where a
 * replacement stands in the text already it is left alone, so that "Tandem" becomes "Tandem Inc" once.
 */
export function* createDictionary(entries: readonly DictionaryEntry[]): Generator<void, ApplyDictionary> {
  const ids = new Map<string, number>();
  const root: Node = { next: new Map(), finds: [] };
  for (const { term, replacement } of entries) {
    yield;
    if (term.trim() !== '') add({ term: tokensOf(term), replacement, isExact: hasInnerCapital(term) });
  }
  for (const { replacement } of entries) {
    yield;
    if (replacement.trim() !== '') add({ term: tokensOf(replacement), replacement: null, isExact: false });
  }

  function add({ term, replacement, isExact }: { term: Token[]; replacement: string | null; isExact: boolean }): void {
    let node = root;
    for (const key of term.map(keyOf)) {
      const id = ids.get(key) ?? ids.size;
      ids.set(key, id);
      const next = node.next.get(id) ?? { next: new Map(), finds: [] };
      node.next.set(id, next);
      node = next;
    }
    if (node !== root) node.finds.push({ written: writtenOf(term), replacement, isExact });
  }

  /** The longest that begins at a token. */
  function find(tokens: readonly Token[], keys: Keys, at: number): Found | null {
    let node: Node | undefined = root;
    let found: Found | null = null;
    for (let index = at; index < tokens.length && node !== undefined; index++) {
      const whole: Node | undefined = node.next.get(keys.whole[index]!);
      const bare = keys.bare[index] === NONE ? undefined : node.next.get(keys.bare[index]!);
      node = whole;
      const ends = (whole?.finds.length ?? 0) + (bare?.finds.length ?? 0) > 0;
      if (!ends || isInWord(tokens[index + 1], tokens[index]!)) continue;
      if (bare !== undefined)
        found = endAt(bare, tokens.slice(at, index + 1), POSSESSIVE.exec(tokens[index]!.text)![0]) ?? found;
      if (whole !== undefined) found = endAt(whole, tokens.slice(at, index + 1), '') ?? found;
    }
    return found;
  }

  /** An exact one is the closer match of two; of equal ones the first of the dictionary. */
  function endAt({ finds }: Node, matched: Token[], ending: string): Found | null {
    const written = writtenOf(matched).slice(0, -ending.length || undefined);
    const best = finds.find((one) => one.isExact && one.written === written) ?? finds.find((one) => !one.isExact);
    if (best === undefined) return null;
    const replacement =
      best.replacement !== null && !best.isExact ? inPlaceOf(best.replacement, matched) : best.replacement;
    return { matched, replacement, ending };
  }

  function* keysOfAll(tokens: readonly Token[]): Generator<void, Keys> {
    const whole = new Int32Array(tokens.length).fill(NONE);
    const bare = new Int32Array(tokens.length).fill(NONE);
    for (let at = 0; at < tokens.length; at++) {
      if (at % TOKENS_PER_SLICE === 0) yield;
      const { kind, text, isFixed } = tokens[at]!;
      if (isFixed || text.length > 200 || !(MATCHED.has(kind) || isNameLike(tokens[at]!))) continue;
      const key = keyOf(tokens[at]!);
      whole[at] = ids.get(key) ?? NONE;
      if (!key.endsWith("'s") || key.length < 4 || CONTRACTED.has(key.slice(0, -2))) continue;
      bare[at] = ids.get(key.slice(0, -2)) ?? NONE;
    }
    return { whole, bare };
  }

  return function* (tokens) {
    if (root.next.size === 0) return tokens;
    const keys = yield* keysOfAll(tokens);
    const out: Token[] = [];
    for (let at = 0; at < tokens.length; ) {
      // A term may have as many tokens as it has characters.
      if (at % TOKENS_PER_SEARCH === 0) yield;
      const here = tokens[at]!;
      const mayBegin = (keys.whole[at] !== NONE || keys.bare[at] !== NONE) && here.kind !== 'space';
      const found = mayBegin && !isInWord(tokens[at - 1], here) ? find(tokens, keys, at) : null;
      if (found === null) {
        out.push(here);
        at++;
        continue;
      }
      const { matched, replacement, ending } = found;
      const text = replacement === null ? textOf(matched) : replacement + ending;
      if (text !== '') out.push(fixed(text));
      at += matched.length;
    }
    return out;
  };
}

const TOKENS_PER_SEARCH = 64;

/** Of a token that is in no term. */
const NONE = -1;

/** For each token the number of its key, and of the one without the 's behind it. */
interface Keys {
  whole: Int32Array;
  bare: Int32Array;
}

interface Node {
  next: Map<number, Node>;
  /** That end here. */
  finds: Find[];
}

interface Found {
  matched: Token[];
  replacement: string | null;
  /** The 's that stood behind it, and stays. */
  ending: string;
}

interface Find {
  written: string;
  /** Null: it stands there already. */
  replacement: string | null;
  isExact: boolean;
}

/** Terms are found among these; never in addresses, code, handles, or lines that are kept, nor in a part of a number. */
const MATCHED: ReadonlySet<Token['kind']> = new Set(['word', 'number', 'mark', 'space']);

/** Node.js and snake_case are names as well as files and variables; a term may be all of one. */
function isNameLike({ kind, text }: Token): boolean {
  return kind === 'kept' && /^[\p{L}\p{M}\p{N}_.-]+$/u.test(text);
}

function tokensOf(text: string): Token[] {
  const steps = tokenize(`\0${text.trim()}`);
  let step = steps.next();
  while (!step.done) step = steps.next();
  // Behind something else nothing is the start of a line.
  return step.value.slice(1);
}

function keyOf({ kind, text }: Token): string {
  if (kind === 'space' || kind === 'break') return ' ';
  return text.toLowerCase().normalize('NFC').replaceAll('’', "'");
}

function writtenOf(tokens: readonly Token[]): string {
  return tokens
    .map(({ kind, text }) => (kind === 'space' || kind === 'break' ? ' ' : text.normalize('NFC').replaceAll('’', "'")))
    .join('');
}

function hasInnerCapital(term: string): boolean {
  return /[\p{L}\p{M}\p{N}][^\s]*\p{Lu}/u.test(term);
}

const POSSESSIVE = /['’]s$/i;
/** Behind these 's is "is". */
const CONTRACTED = new Set([
  'it',
  'he',
  'she',
  'that',
  'what',
  'who',
  'where',
  'there',
  'here',
  'how',
  'let',
  'when',
  'why',
]);

/** "self" of "self-service" is a word; "C" of "C++" and "R" of "R&D" are none by themselves. */
function isInWord(beside: Token | undefined, edge: Token): boolean {
  if (beside === undefined || beside.kind === 'space' || beside.kind === 'break') return false;
  if (edge.kind === 'mark') return beside.text === edge.text && beside.kind === 'mark';
  return beside.kind === 'mark'
    ? /^[+#&@=\\$]/u.test(beside.text)
    : beside.kind === 'word' || beside.kind === 'number' || beside.kind === 'kept';
}

function inPlaceOf(replacement: string, matched: readonly Token[]): string {
  return replacement === replacement.toLowerCase() ? inCaseOf(replacement, writtenOf(matched)) : replacement;
}
