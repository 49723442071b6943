import { pairsOf, unspacedParts } from './unspaced.ts';

/** In characters. A longer text rarely adds anything. */
const LONGEST_TEXT = 20_000;
const LONGEST_WORD = 40;
/** Lengths of the letter sequences by which words are compared. */
const SHORTEST_RUN = 3;
const LONGEST_RUN = 5;
/** Weight of all the sequences of a word relative to the word itself. */
const RUNS_COUNT = 1.2;

/**
 * Adds the features of words to a point: each word and its letter sequences, hashed. So texts are near one another if
 * they are written alike, in any form and language. `words` is the result of `wordsOf`.
 */
export function addLetterFeatures(point: Float32Array, words: ReadonlyMap<string, number>): void {
  for (const [word, times] of words) {
    const weight = weightOf(word) * (1 + Math.log(times));
    addFeature(point, `=${word}`, weight);
    const runs = unspacedParts(word)[0]?.isUnspaced ? [] : runsOf(word);
    // Scaled so that together they have the length RUNS_COUNT.
    for (const run of runs) addFeature(point, run, (weight * RUNS_COUNT) / Math.sqrt(runs.length));
  }
  const [first] = words.keys();
  // The features of a few short words may cancel one another.
  if (first !== undefined && point.every((value) => value === 0)) addFeature(point, `=${first}`, weightOf(first));
}

/**
 * The words of a text without case, accents and punctuation, with the number of times each occurs. Languages without
 * spaces give pairs of letters.
 */
export function wordsOf(text: string): Map<string, number> {
  const folded = text
    .slice(0, LONGEST_TEXT)
    .normalize('NFKD')
    .replace(/[\u0300-\u036f]/g, '')
    .toLowerCase()
    // The parts of a contraction are not words: `won` and `t`, or `asha` and `s`.
    .replace(/(?:\bca|\bwo|\bsha)?n['’]t(?!\p{L})/gu, ' not')
    .replace(/(?<=\p{L})['’](?:s|d|m|ll|re|ve)(?!\p{L})/gu, '');
  const counts = new Map<string, number>();
  for (const [word] of folded.matchAll(/[\p{L}\p{M}\p{N}]+/gu)) {
    for (const { text: part, isUnspaced } of unspacedParts(word)) {
      for (const kept of isUnspaced ? pairsOf(part) : [part.slice(0, LONGEST_WORD)]) {
        counts.set(kept, (counts.get(kept) ?? 0) + 1);
      }
    }
  }
  return counts;
}

/** Function words say next to nothing. Long words say more than short ones, as they are rarer. */
function weightOf(word: string): number {
  if (GRAMMAR.has(word)) return 0.05;
  return Math.min(1, 0.4 + 0.1 * [...word].length);
}

/** Letter sequences of a word. Marks at its ends distinguish its edges from its middle. */
function runsOf(word: string): string[] {
  const letters = [...`<${word}>`];
  const runs: string[] = [];
  for (let length = SHORTEST_RUN; length <= LONGEST_RUN; length++) {
    for (let start = 0; start + length <= letters.length; start++)
      runs.push(letters.slice(start, start + length).join(''));
  }
  return runs;
}

/** FNV-1a, then mixed. The sign keeps features that collide from adding up. */
function addFeature(point: Float32Array, feature: string, weight: number): void {
  let hash = 0x811c9dc5;
  for (let at = 0; at < feature.length; at++) hash = Math.imul(hash ^ feature.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  hash ^= hash >>> 13;
  const place = (hash >>> 1) % point.length;
  point[place]! += hash & 1 ? weight : -weight;
}

const GRAMMAR = new Set(
  `a about above after again all also am an and any are as at be because been before being below between both but by can
  could did do does doing down during each few for from further had has have having he her here hers him his how i if in
  into is it its just me more most my no nor not now of off on once only or other our out over own same she should so some
  such than that the their them then there these they this those through to too under until up us very was we were what
  when where which while who whom why will with would you your yours`.split(/\s+/),
);
