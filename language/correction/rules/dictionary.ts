import type { DictionaryEntry } from '../text-correction.ts';
import { inCaseOf } from './letter-case.ts';
import { fixed, TOKENS_PER_SLICE, type Token, textOf } from './token.ts';
import { tokenize } from './tokenize.ts';

/** Applies the dictionary to tokens. Marks words that it inserted or found in place as `isFixed`. */
export type ApplyDictionary = (tokens: Token[]) => Generator<void, Token[]>;

/**
 * Compiles a dictionary. A term matches whole words with any white space between them; the longest term wins. Case is
 * ignored, unless the term has a capital after the first letter of a word (iPhone, IT): then it must match exactly. A
 * replacement keeps its own capitals; one all in lower case takes the capitals of the words it replaces, unless those
 * had to match exactly. An existing replacement is left alone, so that "Tandem" becomes "Tandem Inc" only once.
 */
export function* createDictionary(entries: readonly DictionaryEntry[]): Generator<void, ApplyDictionary> {
  const loose = createTrie((written) => written.toLowerCase());
  const exact = createTrie((written) => written);
  for (const { term, replacement } of entries) {
    yield;
    if (term.trim() !== '') add(hasInnerCapital(term) ? exact : loose, tokensOf(term), replacement);
  }
  for (const { replacement } of entries) {
    yield;
    if (replacement.trim() !== '') add(loose, tokensOf(replacement), null);
  }
  /** Tokens examined since the last yield. */
  let looked = 0;

  /** The longest match that starts at a token. Ties: the whole word first, then the exact match. */
  function find(tokens: readonly Token[], keys: readonly [Keys, Keys], at: number): Found | null {
    let nodes: [Node | undefined, Node | undefined] = [loose.root, exact.root];
    let best: { end: End; to: number; isBare: boolean; isExact: boolean } | null = null;
    for (let index = at; index < tokens.length && (nodes[0] ?? nodes[1]) !== undefined; index++) {
      looked++;
      const bare = [nodes[0]?.next.get(keys[0].bare[index]!), nodes[1]?.next.get(keys[1].bare[index]!)] as const;
      nodes = [nodes[0]?.next.get(keys[0].whole[index]!), nodes[1]?.next.get(keys[1].whole[index]!)];
      const ends = [bare[0]?.end, bare[1]?.end, nodes[0]?.end, nodes[1]?.end];
      const last = ends.findLastIndex((end) => end !== undefined);
      if (last < 0 || isInWord(tokens[index + 1], tokens[index]!)) continue;
      best = { end: ends[last]!, to: index + 1, isBare: last < 2, isExact: last % 2 === 1 };
    }
    if (best === null) return null;
    const matched = tokens.slice(at, best.to);
    const ending = best.isBare ? POSSESSIVE.exec(matched.at(-1)!.text)![0] : '';
    const { replacement } = best.end;
    if (replacement === null || best.isExact) return { matched, replacement, ending };
    const written = writtenOf(matched).slice(0, -ending.length || undefined);
    return { matched, replacement: inPlaceOf(replacement, written), ending };
  }

  return function* (tokens) {
    if (loose.root.next.size + exact.root.next.size === 0) return tokens;
    const keys = [yield* keysOfAll(loose, tokens), yield* keysOfAll(exact, tokens)] as const;
    const mayBegin = (at: number) => keys.some(({ whole, bare }) => whole[at] !== NONE || bare[at] !== NONE);
    const out: Token[] = [];
    for (let at = 0; at < tokens.length; ) {
      looked++;
      // A term may have as many tokens as characters.
      if (looked > TOKENS_PER_SLICE) {
        yield;
        looked = 0;
      }
      const here = tokens[at]!;
      const isFound = here.kind !== 'space' && mayBegin(at) && !isInWord(tokens[at - 1], here);
      const found = isFound ? find(tokens, keys, at) : null;
      if (found === null) {
        out.push(here);
        at++;
        continue;
      }
      const { matched, replacement, ending } = found;
      const text = replacement === null ? textOf(matched) : replacement + ending;
      at += matched.length;
      if (text !== '') out.push(fixed(text));
      else at = closeGap(out, tokens, at);
    }
    return out;
  };
}

/**
 * After a deletion, removes one of the spaces beside the gap and one of its commas. @returns the index where the text
 * continues
 */
function closeGap(out: Token[], tokens: readonly Token[], at: number): number {
  const isSpace = (token: Token | undefined) => token?.kind === 'space';
  const last = out.at(-1);
  const before = isSpace(last) ? out.at(-2) : last;
  const isBehindMark = last?.kind === 'mark' && /^["“‘([]$/.test(last.text);
  const isOpen = before === undefined || before.kind === 'break' || before.kind === 'lead' || isBehindMark;
  let next = at;
  if (tokens[next]?.text === ',' && (isOpen || before.text === ',')) next++;
  if (isSpace(tokens[next]) && (last === undefined || isSpace(last) || isOpen)) return next + 1;
  if (isSpace(last) && (tokens[next] === undefined || tokens[next]!.kind === 'break' || tokens[next]!.kind === 'mark'))
    out.pop();
  return next;
}

/** Terms as a trie over numbered token keys. */
interface Trie {
  ids: Map<string, number>;
  root: Node;
  keyOf: (written: string) => string;
}

function createTrie(keyOf: Trie['keyOf']): Trie {
  return { ids: new Map(), root: { next: new Map() }, keyOf };
}

/** The first of two equal terms wins; a term takes precedence over an existing replacement. */
function add({ ids, root, keyOf }: Trie, term: readonly Token[], replacement: string | null): void {
  let node = root;
  for (const key of term.map((token) => keyOf(writtenAs(token)))) {
    const id = ids.get(key) ?? ids.size;
    ids.set(key, id);
    const next = node.next.get(id) ?? { next: new Map() };
    node.next.set(id, next);
    node = next;
  }
  if (node !== root) node.end ??= { replacement };
}

function* keysOfAll({ ids, keyOf }: Trie, tokens: readonly Token[]): Generator<void, Keys> {
  const whole = new Int32Array(tokens.length).fill(NONE);
  const bare = new Int32Array(tokens.length).fill(NONE);
  if (ids.size === 0) return { whole, bare };
  for (let at = 0; at < tokens.length; at++) {
    if (at % TOKENS_PER_SLICE === 0) yield;
    const { kind, text, isFixed } = tokens[at]!;
    if (isFixed || text.length > 200 || !(MATCHED.has(kind) || isNameLike(tokens[at]!))) continue;
    const key = keyOf(writtenAs(tokens[at]!));
    whole[at] = ids.get(key) ?? NONE;
    if (key.length < 4 || !POSSESSIVE.test(key) || CONTRACTED.has(key.slice(0, -2).toLowerCase())) continue;
    bare[at] = ids.get(key.slice(0, -2)) ?? NONE;
  }
  return { whole, bare };
}

/** Key of a token that occurs in no term. */
const NONE = -1;

/** For each token, the number of its key, and of its key without a trailing 's. */
interface Keys {
  whole: Int32Array;
  bare: Int32Array;
}

interface Node {
  next: Map<number, Node>;
  /** Set if a term ends here. */
  end?: End;
}

interface End {
  /** Null: an existing replacement, left alone. */
  replacement: string | null;
}

interface Found {
  matched: Token[];
  replacement: string | null;
  /** The trailing 's, which stays. */
  ending: string;
}

/** Kinds of tokens in which terms are found: not addresses, code, handles, block lines or parts of numbers. */
const MATCHED: ReadonlySet<Token['kind']> = new Set(['word', 'number', 'mark', 'space', 'picture']);

/** Node.js and snake_case can be names or files and variables; such a token matches only as a whole term. */
function isNameLike({ kind, text }: Token): boolean {
  return kind === 'kept' && /^[\p{L}\p{M}\p{N}_.-]+$/u.test(text);
}

function tokensOf(text: string): Token[] {
  const steps = tokenize(`\0 ${text.trim()}`);
  let step = steps.next();
  while (!step.done) step = steps.next();
  // Tokenized after other text, so that it is not taken for the start of a line.
  return step.value.slice(2);
}

/** Joiners and soft hyphens inside words. */
const INVISIBLE = /[\u00ad\u200b-\u200d\ufeff]/g;

function writtenAs({ kind, text }: Token): string {
  if (kind === 'space' || kind === 'break') return ' ';
  return text.normalize('NFC').replaceAll('’', "'").replace(INVISIBLE, '');
}

function writtenOf(tokens: readonly Token[]): string {
  return tokens.map(writtenAs).join('');
}

function hasInnerCapital(term: string): boolean {
  return /[\p{L}\p{M}\p{N}][^\s]*\p{Lu}/u.test(term);
}

const POSSESSIVE = /['’]s$/i;
/** After these, 's means "is". */
const CONTRACTED = new Set('it he she that what who where there here how let when why'.split(' '));

/** "self" in "self-service" is a word; "C" in "C++" and "R" in "R&D" are not. */
function isInWord(beside: Token | undefined, edge: Token): boolean {
  if (beside === undefined || beside.kind === 'space' || beside.kind === 'break') return false;
  if (edge.kind === 'mark') return beside.text === edge.text && beside.kind === 'mark';
  return beside.kind === 'mark'
    ? /^[+#&@=\\$]/u.test(beside.text)
    : beside.kind === 'word' || beside.kind === 'number' || beside.kind === 'kept';
}

function inPlaceOf(replacement: string, written: string): string {
  return replacement === replacement.toLowerCase() ? inCaseOf(replacement, written) : replacement;
}
