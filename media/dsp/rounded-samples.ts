/** A copy of the first `count`, rounded to 16 bits. */
export function roundedSamples(values: Float32Array, count: number): Int16Array<ArrayBuffer> {
  const samples = new Int16Array(count);
  for (let at = 0; at < count; at++) samples[at] = Math.max(-32_768, Math.min(32_767, Math.round(values[at]!)));
  return samples;
}
