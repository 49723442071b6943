/** Similarity of spoken and received audio, and of spoken and recognised words. */

/** The same samples, apart from a lost packet here and there. */
export const SAME_LIKENESS = 0.9;
/** Unrelated sentences stay below. */
export const FOREIGN_LIKENESS = 0.5;

/** Length of the loudest part, which is searched first: a quarter of a second at 8 kHz. */
const PROBE_SAMPLES = 2_000;

/** Best correlation of a sentence with the received audio; 1 for identical samples. */
export function likenessOf(heard: Int16Array, spoken: Int16Array): number {
  const probeAt = loudestPart(spoken);
  const probe = spoken.subarray(probeAt, probeAt + PROBE_SAMPLES);
  let best = 0;
  let bestAt = 0;
  // Normalizes the correlation, or the loudest part of the recording would win.
  let power = 0;
  for (let at = 0; at < heard.length; at += 1) {
    power += heard[at]! ** 2 - (at < probe.length ? 0 : heard[at - probe.length]! ** 2);
    const start = at + 1 - probe.length;
    if (start < 0 || power === 0) continue;
    const likeness = innerProduct(heard, start, probe) / Math.sqrt(power);
    if (likeness <= best) continue;
    best = likeness;
    bestAt = start;
  }
  const start = Math.max(0, bestAt - probeAt);
  return correlation(heard.subarray(start, start + spoken.length), spoken);
}

/** Counts the words of a sentence that were recognised in order. */
export function wordsUnderstood(spoken: string, understood: string): { words: number; understood: number } {
  const [said, heard] = [wordsOf(spoken), wordsOf(understood)];
  // Longest common subsequence.
  let row = new Array<number>(heard.length + 1).fill(0);
  for (const word of said) {
    const next = [0];
    for (const [index, other] of heard.entries()) {
      next.push(word === other ? row[index]! + 1 : Math.max(row[index + 1]!, next[index]!));
    }
    row = next;
  }
  return { words: said.length, understood: row.at(-1) ?? 0 };
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}']+/gu) ?? [];
}

function loudestPart(samples: Int16Array): number {
  let loudest = 0;
  let at = 0;
  for (let start = 0; start + PROBE_SAMPLES <= samples.length; start += PROBE_SAMPLES / 4) {
    const power = innerProduct(samples, start, samples.subarray(start, start + PROBE_SAMPLES));
    if (power <= loudest) continue;
    loudest = power;
    at = start;
  }
  return at;
}

function correlation(a: Int16Array, b: Int16Array): number {
  const common = b.subarray(0, a.length);
  const power = Math.sqrt(innerProduct(a, 0, a) * innerProduct(b, 0, b));
  return power === 0 ? 0 : innerProduct(a, 0, common) / power;
}

function innerProduct(a: Int16Array, at: number, b: Int16Array): number {
  let sum = 0;
  for (let i = 0; i < b.length; i += 1) sum += a[at + i]! * b[i]!;
  return sum;
}
