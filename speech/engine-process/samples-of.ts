/** Converts bytes of a pipe to 16-bit samples. A copy, because they may start at an odd address. */
export function samplesOf(bytes: Buffer): Int16Array<ArrayBuffer> {
  const samples = new Int16Array(bytes.byteLength >> 1);
  new Uint8Array(samples.buffer).set(bytes.subarray(0, samples.byteLength));
  return samples;
}
