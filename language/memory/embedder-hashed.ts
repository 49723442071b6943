import { Slice } from '../../runtime/slices.ts';
import type { Embedder } from './embedder.ts';
import { pairsOf, unspacedParts } from './unspaced.ts';

/**
 * Needs no model: a text is the bag of its words and of the letters they are made of, hashed into a point, rare kinds of
 * words counting more. So it finds what is written alike, in whatever forms and languages, and knows no synonyms: that
 * is for a real model. The same text always makes the same point; a change of how is a new version.
 */
export function createHashedEmbedder(): Embedder {
  return {
    name: 'hashed-ngrams-2',
    dimensions: DIMENSIONS,
    batchSize: 64,
    async embed(texts, signal) {
      const points: Float32Array[] = [];
      const slice = new Slice();
      for (const text of texts) {
        signal.throwIfAborted();
        if (slice.isOver) await slice.rest();
        points.push(hashedPoint(text));
      }
      return points;
    },
  };
}

const DIMENSIONS = 768;
/** Of a text; what is beyond says little that this did not. */
const LONGEST_TEXT = 20_000;
const LONGEST_WORD = 40;
/** Letters that stand together, of which words are compared. */
const SHORTEST_RUN = 3;
const LONGEST_RUN = 5;
/** What all the runs of a word weigh beside the word itself. */
const RUNS_COUNT = 1.2;

function hashedPoint(text: string): Float32Array {
  const point = new Float32Array(DIMENSIONS);
  for (const [word, times] of wordsOf(text)) {
    const weight = weightOf(word) * (1 + Math.log(times));
    addFeature(point, `=${word}`, weight);
    const runs = unspacedParts(word)[0]?.isUnspaced ? [] : runsOf(word);
    // Each a little: together they are as long as RUNS_COUNT says.
    for (const run of runs) addFeature(point, run, (weight * RUNS_COUNT) / Math.sqrt(runs.length));
  }
  return normalised(point);
}

/** Without case, accents and punctuation, pairs of letters where no spaces are written; how often each occurs. */
function wordsOf(text: string): Map<string, number> {
  const folded = text
    .slice(0, LONGEST_TEXT)
    .normalize('NFKD')
    .replace(/[\u0300-\u036f]/g, '')
    .toLowerCase();
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

/** Words of grammar say next to nothing, and long words more than short ones: as rare as they are, about. */
function weightOf(word: string): number {
  if (GRAMMAR.has(word)) return 0.05;
  return Math.min(1, 0.4 + 0.1 * [...word].length);
}

/** With its ends marked, so that beginnings and endings are their own. */
function runsOf(word: string): string[] {
  const letters = [...`<${word}>`];
  const runs: string[] = [];
  for (let length = SHORTEST_RUN; length <= LONGEST_RUN; length++) {
    for (let start = 0; start + length <= letters.length; start++)
      runs.push(letters.slice(start, start + length).join(''));
  }
  return runs;
}

/** FNV-1a, then stirred; the sign keeps features that meet from adding up. */
function addFeature(point: Float32Array, feature: string, weight: number): void {
  let hash = 0x811c9dc5;
  for (let at = 0; at < feature.length; at++) hash = Math.imul(hash ^ feature.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d);
  hash ^= hash >>> 13;
  const place = (hash >>> 1) % DIMENSIONS;
  point[place]! += hash & 1 ? weight : -weight;
}

/** Of length 1; of a text without words, nothing. */
function normalised(point: Float32Array): Float32Array {
  let squares = 0;
  for (const value of point) squares += value * value;
  if (squares === 0) return point;
  const length = Math.sqrt(squares);
  return point.map((value) => value / length);
}

const GRAMMAR = new Set(
  `a about above after again all also am an and any are as at be because been before being below between both but by can
  could did do does doing down during each few for from further had has have having he her here hers him his how i if in
  into is it its just me more most my no nor not now of off on once only or other our out over own same she should so some
  such than that the their them then there these they this those through to too under until up us very was we were what
  when where which while who whom why will with would you your yours`.split(/\s+/),
);
