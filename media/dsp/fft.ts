/** Fourier transform of real samples, of one size, without allocation: a radix-2 transform of half the size. */
export class RealFft {
  readonly size: number;
  readonly #real: Float64Array;
  readonly #imaginary: Float64Array;
  readonly #cosines: Float64Array;
  readonly #sines: Float64Array;
  readonly #reversed: Uint32Array;

  /** @throws RangeError unless the size is a power of two, at least 4 */
  constructor(size: number) {
    if (size < 4 || (size & (size - 1)) !== 0) throw new RangeError('the size of the transform must be a power of two');
    const half = size / 2;
    this.size = size;
    this.#real = new Float64Array(half);
    this.#imaginary = new Float64Array(half);
    this.#cosines = Float64Array.from({ length: half }, (_, i) => Math.cos((2 * Math.PI * i) / size));
    this.#sines = Float64Array.from({ length: half }, (_, i) => Math.sin((2 * Math.PI * i) / size));
    const bits = Math.log2(half);
    this.#reversed = Uint32Array.from({ length: half }, (_, i) => reverseBits(i, bits));
  }

  /** Writes the squared magnitudes of bins 0 to size / 2, inclusive. */
  powers(samples: Float32Array, powers: Float32Array): void {
    const half = this.size / 2;
    const real = this.#real;
    const imaginary = this.#imaginary;
    for (let i = 0; i < half; i++) {
      const target = this.#reversed[i]!;
      real[target] = samples[2 * i]!;
      imaginary[target] = samples[2 * i + 1]!;
    }
    this.#transform();
    // Separates the spectra of even and odd samples by their symmetry.
    powers[0] = (real[0]! + imaginary[0]!) ** 2;
    powers[half] = (real[0]! - imaginary[0]!) ** 2;
    for (let bin = 1; bin < half; bin++) {
      const mirror = half - bin;
      const evenReal = (real[bin]! + real[mirror]!) / 2;
      const evenImaginary = (imaginary[bin]! - imaginary[mirror]!) / 2;
      const oddReal = (imaginary[bin]! + imaginary[mirror]!) / 2;
      const oddImaginary = (real[mirror]! - real[bin]!) / 2;
      const cosine = this.#cosines[bin]!;
      const sine = this.#sines[bin]!;
      const sumReal = evenReal + cosine * oddReal + sine * oddImaginary;
      const sumImaginary = evenImaginary + cosine * oddImaginary - sine * oddReal;
      powers[bin] = sumReal * sumReal + sumImaginary * sumImaginary;
    }
  }

  #transform(): void {
    const half = this.size / 2;
    const real = this.#real;
    const imaginary = this.#imaginary;
    for (let span = 1; span < half; span *= 2) {
      const step = half / span;
      for (let offset = 0; offset < span; offset++) {
        const cosine = this.#cosines[offset * step]!;
        const sine = this.#sines[offset * step]!;
        for (let a = offset; a < half; a += 2 * span) {
          const b = a + span;
          const turnedReal = cosine * real[b]! + sine * imaginary[b]!;
          const turnedImaginary = cosine * imaginary[b]! - sine * real[b]!;
          real[b] = real[a]! - turnedReal;
          imaginary[b] = imaginary[a]! - turnedImaginary;
          real[a] = real[a]! + turnedReal;
          imaginary[a] = imaginary[a]! + turnedImaginary;
        }
      }
    }
  }
}

function reverseBits(value: number, bits: number): number {
  let reversed = 0;
  for (let bit = 0; bit < bits; bit++) reversed |= ((value >> bit) & 1) << (bits - 1 - bit);
  return reversed;
}
