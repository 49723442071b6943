/**
 * Phonetic similarity of words from their spelling. Latin letters are mapped to rough English sounds, and confusable
 * sounds are cheap to substitute; other scripts are compared letter by letter.
 */

/** A word prepared for comparison. */
export interface Sounds {
  /** One number per sound. */
  readonly sounds: Uint16Array;
  readonly letters: Uint16Array;
}

/** Prepares one or several words, which are compared as one. */
export function soundsOf(words: string): Sounds {
  const spelling = words.split(/\s+/u).map((word) => soundSpelling(lettersOf(word)));
  return { sounds: codesOf(spelling.join('')), letters: codesOf(lettersOf(words)) };
}

/** Lower-case letters and digits without accents, spaces and punctuation. */
export function lettersOf(word: string): string {
  return word
    .normalize('NFKD')
    .replace(/[\u0300-\u036f]/g, '')
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}]/gu, '');
}

/** Similarity from 0 to 1; sounds weigh three times as much as letters. Returns 0 early if it is below `atLeast`. */
export function likeness(a: Sounds, b: Sounds, atLeast: number): number {
  const longest = Math.max(a.sounds.length, b.sounds.length);
  if (longest === 0) return 0;
  // The least similarity of the sounds, assuming equal letters. Each missing sound costs at least CHEAPEST_GAP.
  const furthest = (longest * (1 - atLeast)) / SOUNDS_SHARE;
  if (Math.abs(a.sounds.length - b.sounds.length) * CHEAPEST_GAP > furthest) return 0;
  const soundDistance = distance(a.sounds, b.sounds, furthest);
  if (soundDistance > furthest) return 0;
  const letterDistance = distance(a.letters, b.letters, Number.POSITIVE_INFINITY);
  return (
    SOUNDS_SHARE * (1 - soundDistance / longest) +
    (1 - SOUNDS_SHARE) * (1 - letterDistance / Math.max(a.letters.length, b.letters.length))
  );
}

const SOUNDS_SHARE = 0.75;

/** Longest first within a letter; `$` is the end of the word, `^` its start. Capitals stand for two-letter sounds. */
const SPELLINGS: readonly [RegExp, string][] = [
  [/^(?:kn|gn|pn)/g, 'n'],
  [/^wr/g, 'r'],
  [/^ps/g, 's'],
  [/^x/g, 'z'],
  [/mb$/g, 'm'],
  [/tch/g, 'C'],
  [/sch/g, 'S'],
  [/(?:tion|sion)/g, 'Sn'],
  [/(?:cia|tia)/g, 'Sa'],
  [/dg(?=[eiy])/g, 'J'],
  [/ch/g, 'C'],
  [/sh/g, 'S'],
  [/th/g, 'T'],
  [/ph/g, 'f'],
  [/gh(?=[aeiou])/g, 'g'],
  [/gh/g, ''],
  [/wh/g, 'w'],
  [/ck/g, 'k'],
  [/qu?/g, 'kw'],
  [/c(?=[eiy])/g, 's'],
  [/c/g, 'k'],
  [/x/g, 'ks'],
  [/g(?=[eiy])/g, 'J'],
  [/j/g, 'J'],
  [/^y(?=[aeiou])/g, 'Y'],
  [/y/g, 'i'],
  [/(?<=[^aeiou])h(?=[^aeiou]|$)/g, ''],
  [/(?<=[a-zA-Z]{2})e$/g, ''],
  [/(?<=[a-zA-Z]{2})es$/g, 's'],
  [/(?:ee|ea|ie|ei)/g, 'i'],
  [/(?:oo|ou|ue|ew|eu)/g, 'u'],
  [/(?:au|aw|oa|ow)/g, 'o'],
  [/(?:ai|ay)/g, 'e'],
  [/(.)\1+/g, '$1'],
];

function soundSpelling(letters: string): string {
  if (!/^[a-z]+$/.test(letters)) return letters;
  return SPELLINGS.reduce((spelling, [letters_, sound]) => spelling.replace(letters_, sound), letters);
}

/** Costs of substituting one sound for another; others cost 1. */
const CONFUSED: readonly [sounds: string, cost: number][] = [
  ['aeiou', 0.4],
  ['pb', 0.3],
  ['td', 0.3],
  ['kg', 0.3],
  ['fv', 0.3],
  ['szST', 0.4],
  ['CJS', 0.4],
  ['Tfd', 0.5],
  ['mn', 0.4],
  ['lr', 0.6],
  ['vwb', 0.6],
  ['iY', 0.3],
  ['uw', 0.3],
];
/** Vowels, h and glides are easily missed. */
const WEAK_SOUNDS = 'aeiouhwYr';
const WEAK_GAP = 0.5;
const CHEAPEST_GAP = WEAK_GAP;

const EXCHANGE = new Float64Array(128 * 128).fill(1);
for (const [sounds, cost] of CONFUSED) {
  for (const a of sounds) {
    for (const b of sounds) {
      const at = a.charCodeAt(0) * 128 + b.charCodeAt(0);
      EXCHANGE[at] = Math.min(EXCHANGE[at]!, cost);
    }
  }
}
const GAP = Float64Array.from({ length: 128 }, (_, code) =>
  WEAK_SOUNDS.includes(String.fromCharCode(code)) ? WEAK_GAP : 1,
);

function exchangeCost(a: number, b: number): number {
  if (a === b) return 0;
  return a < 128 && b < 128 ? EXCHANGE[a * 128 + b]! : 1;
}

function gapCost(code: number): number {
  return code < 128 ? GAP[code]! : 1;
}

const LONGEST = 64;
const previousRow = new Float64Array(LONGEST + 1);
const currentRow = new Float64Array(LONGEST + 1);

/** Weighted edit distance; any number above `furthest` once the limit is exceeded. */
function distance(a: Uint16Array, b: Uint16Array, furthest: number): number {
  let previous = previousRow;
  let current = currentRow;
  previous[0] = 0;
  for (let j = 0; j < b.length; j++) previous[j + 1] = previous[j]! + gapCost(b[j]!);
  for (let i = 0; i < a.length; i++) {
    const code = a[i]!;
    const gap = gapCost(code);
    current[0] = previous[0]! + gap;
    let least = current[0];
    for (let j = 0; j < b.length; j++) {
      const exchanged = previous[j]! + exchangeCost(code, b[j]!);
      const cost = Math.min(exchanged, previous[j + 1]! + gap, current[j]! + gapCost(b[j]!));
      current[j + 1] = cost;
      if (cost < least) least = cost;
    }
    if (least > furthest) return least;
    [previous, current] = [current, previous];
  }
  return previous[b.length]!;
}

function codesOf(text: string): Uint16Array {
  return Uint16Array.from(text.slice(0, LONGEST), (character) => character.charCodeAt(0));
}
