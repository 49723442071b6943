/** Of 16 bits, that an engine answered with. A copy: what comes over a pipe need not begin at an even address. */
export function samplesOf(bytes: Buffer): Int16Array<ArrayBuffer> {
  const samples = new Int16Array(bytes.byteLength >> 1);
  new Uint8Array(samples.buffer).set(bytes.subarray(0, samples.byteLength));
  return samples;
}
