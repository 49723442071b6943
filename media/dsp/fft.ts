/** Fourier transform of real samples, of one size, without allocation: a radix-2 transform of half the size. */
export class RealFft {
  readonly size: number;
  readonly #half: ComplexFft;
  readonly #real: Float64Array;
  readonly #imaginary: Float64Array;

  /** @throws RangeError unless the size is a power of two, at least 4 */
  constructor(size: number) {
    this.size = size;
    this.#half = new ComplexFft(size / 2);
    this.#real = new Float64Array(size / 2);
    this.#imaginary = new Float64Array(size / 2);
  }

  /** Writes the squared magnitudes of bins 0 to size / 2, inclusive. */
  powers(samples: Float32Array, powers: Float32Array): void {
    const { size: half, cosines, sines, reversed } = this.#half;
    const real = this.#real;
    const imaginary = this.#imaginary;
    for (let i = 0; i < half; i++) {
      const target = reversed[i]!;
      real[target] = samples[2 * i]!;
      imaginary[target] = samples[2 * i + 1]!;
    }
    this.#half.transformReversed(real, imaginary);
    // Separates the spectra of even and odd samples by their symmetry.
    powers[0] = (real[0]! + imaginary[0]!) ** 2;
    powers[half] = (real[0]! - imaginary[0]!) ** 2;
    for (let bin = 1; bin < half; bin++) {
      const mirror = half - bin;
      const evenReal = (real[bin]! + real[mirror]!) / 2;
      const evenImaginary = (imaginary[bin]! - imaginary[mirror]!) / 2;
      const oddReal = (imaginary[bin]! + imaginary[mirror]!) / 2;
      const oddImaginary = (real[mirror]! - real[bin]!) / 2;
      const cosine = cosines[bin]!;
      const sine = sines[bin]!;
      const sumReal = evenReal + cosine * oddReal + sine * oddImaginary;
      const sumImaginary = evenImaginary + cosine * oddImaginary - sine * oddReal;
      powers[bin] = sumReal * sumReal + sumImaginary * sumImaginary;
    }
  }
}

/** Fourier transform of complex samples, of one size, without allocation: radix 2, decimation in time. */
export class ComplexFft {
  readonly size: number;
  /** Turns by half a circle, in `size` steps. */
  readonly cosines: Float64Array;
  readonly sines: Float64Array;
  /** Where the transform takes each sample from. */
  readonly reversed: Uint32Array;

  /** @throws RangeError unless the size is a power of two, at least 2 */
  constructor(size: number) {
    if (size < 2 || (size & (size - 1)) !== 0) throw new RangeError('the size of the transform must be a power of two');
    this.size = size;
    this.cosines = Float64Array.from({ length: size }, (_, i) => Math.cos((Math.PI * i) / size));
    this.sines = Float64Array.from({ length: size }, (_, i) => Math.sin((Math.PI * i) / size));
    const bits = Math.log2(size);
    this.reversed = Uint32Array.from({ length: size }, (_, i) => reverseBits(i, bits));
  }

  /** Transforms in place. Exchange both arrays for the inverse, which is `size` times too large. */
  transform(real: Float64Array, imaginary: Float64Array): void {
    for (let i = 0; i < this.size; i++) {
      const other = this.reversed[i]!;
      if (other <= i) continue;
      const [ofReal, ofImaginary] = [real[i]!, imaginary[i]!];
      real[i] = real[other]!;
      imaginary[i] = imaginary[other]!;
      real[other] = ofReal;
      imaginary[other] = ofImaginary;
    }
    this.transformReversed(real, imaginary);
  }

  /** Transforms samples that were written in the order of `reversed`. */
  transformReversed(real: Float64Array, imaginary: Float64Array): void {
    const { size, cosines, sines } = this;
    for (let span = 1; span < size; span *= 2) {
      const step = size / span;
      for (let offset = 0; offset < span; offset++) {
        const cosine = cosines[offset * step]!;
        const sine = sines[offset * step]!;
        for (let a = offset; a < size; a += 2 * span) {
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
