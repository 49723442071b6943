import { Slice } from '../../runtime/slices.ts';
import type { Embedder } from './embedder.ts';
import { addLetterFeatures, wordsOf } from './letter-features.ts';
import { loadWordVectors } from './word-vectors/load-word-vectors.ts';
import type { WordVectors } from './word-vectors/word-vectors.ts';

/**
 * An embedder without server or download. An embedding has two parts: the meaning of the English words, the mean of
 * their vectors weighted by information (Arora, Liang and Ma, 2017), and the letters, which find names, typos and other
 * languages. Deterministic; a change of the embeddings needs a new name.
 */
export function createOfflineEmbedder({ load = loadWordVectors }: { load?: typeof loadWordVectors } = {}): Embedder {
  return {
    name: 'glove-ngrams-1',
    dimensions: DIMENSIONS,
    batchSize: 64,
    typicalCosine: TYPICAL_COSINE,
    leastEvidence: LEAST_EVIDENCE,
    async embed(texts, signal) {
      signal.throwIfAborted();
      const vectors = await load();
      const points: Float32Array[] = [];
      const slice = new Slice();
      for (const text of texts) {
        signal.throwIfAborted();
        if (slice.isOver) await slice.rest();
        points.push(pointOfText(text, vectors));
      }
      return points;
    },
  };
}

const DIMENSIONS = 768;
/** Weight of the meaning in an English text's embedding; the letters get the rest. */
const MEANING_SHARE = 0.8;
/**
 * A text is not English if known words have less than the first share of its information, and English from the second.
 * In between, it is another language with English words, or English with names and typos.
 */
const LEAST_ENGLISH = 0.2;
const ALL_ENGLISH = 0.9;
/** Measured on questions and passages that do not belong together. */
const TYPICAL_COSINE = 0.04;
/** One in ten unrelated passages reaches it, and nineteen of twenty that answer a question in other words. */
const LEAST_EVIDENCE = 0.15;
/** Information of words without a vector: they are rarer than all others. */
const UNKNOWN_INFORMATION = 8;

function pointOfText(text: string, vectors: WordVectors): Float32Array {
  const point = new Float32Array(DIMENSIONS);
  const meaning = point.subarray(0, vectors.dimensions);
  const letters = point.subarray(vectors.dimensions);
  const words = wordsOf(text);
  addLetterFeatures(letters, words);
  const known = addMeaning(meaning, words, vectors);
  const english = Math.min(1, Math.max(0, (known - LEAST_ENGLISH) / (ALL_ENGLISH - LEAST_ENGLISH)));
  const share = MEANING_SHARE * english;
  scaleTo(Math.sqrt(share), meaning);
  scaleTo(Math.sqrt(1 - share), letters);
  return point;
}

/** Adds the vectors of the words. Returns their share of the information of the text, 0 to 1. */
function addMeaning(sum: Float32Array, words: ReadonlyMap<string, number>, vectors: WordVectors): number {
  let known = 0;
  let total = 0;
  for (const [word, times] of words) {
    const row = vectors.find(word);
    const repeated = 1 + Math.log(times);
    const information = repeated * (row === -1 ? UNKNOWN_INFORMATION : vectors.information(row));
    total += information;
    if (row === -1) continue;
    known += information;
    vectors.addTo(sum, row, information);
  }
  return total === 0 || lengthOf(sum) === 0 ? 0 : known / total;
}

/** Leaves zeros as they are. */
function scaleTo(length: number, values: Float32Array): void {
  const present = lengthOf(values);
  if (present === 0) return;
  for (let at = 0; at < values.length; at++) values[at]! *= length / present;
}

function lengthOf(values: Float32Array): number {
  let squares = 0;
  for (const value of values) squares += value * value;
  return Math.sqrt(squares);
}
