import { ComplexFft } from '../../media/dsp/fft.ts';

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
  const products = innerProducts(heard, probe);
  let best = 0;
  let bestAt = 0;
  // Normalizes the correlation, or the loudest part of the recording would win.
  let power = 0;
  for (let at = 0; at < heard.length; at += 1) {
    power += heard[at]! ** 2 - (at < probe.length ? 0 : heard[at - probe.length]! ** 2);
    const start = at + 1 - probe.length;
    if (start < 0 || power === 0) continue;
    const likeness = products[start]! / Math.sqrt(power);
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

const BLOCK = new ComplexFft(8_192);

/** Inner products of a probe with every part of the audio that has its length: fast correlation by overlap-save. */
function innerProducts(audio: Int16Array, probe: Int16Array): Float64Array {
  const products = new Float64Array(Math.max(0, audio.length - probe.length + 1));
  const wanted = spectrumOf(probe);
  const valid = BLOCK.size - probe.length + 1;
  for (let start = 0; start < products.length; start += valid) {
    const { real, imaginary } = spectrumOf(audio.subarray(start, start + BLOCK.size));
    for (let bin = 0; bin < BLOCK.size; bin += 1) {
      const [a, b, c, d] = [real[bin]!, imaginary[bin]!, wanted.real[bin]!, wanted.imaginary[bin]!];
      real[bin] = a * c + b * d;
      imaginary[bin] = b * c - a * d;
    }
    BLOCK.transform(imaginary, real);
    for (let at = 0; at < valid && start + at < products.length; at += 1) {
      products[start + at] = real[at]! / BLOCK.size;
    }
  }
  return products;
}

function spectrumOf(samples: Int16Array): { real: Float64Array; imaginary: Float64Array } {
  const real = new Float64Array(BLOCK.size);
  real.set(samples);
  const imaginary = new Float64Array(BLOCK.size);
  BLOCK.transform(real, imaginary);
  return { real, imaginary };
}

function innerProduct(a: Int16Array, at: number, b: Int16Array): number {
  let sum = 0;
  for (let i = 0; i < b.length; i += 1) sum += a[at + i]! * b[i]!;
  return sum;
}
