/** A copy with at least `fewest` words, and at least twice as many as before, so that a growing table is seldom copied. */
export function enlarged(words: Int32Array, fewest: number): Int32Array<ArrayBuffer> {
  const larger = new Int32Array(Math.max(2 * words.length, fewest));
  larger.set(words);
  return larger;
}
