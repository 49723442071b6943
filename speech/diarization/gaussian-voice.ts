import { CEPSTRA, type Cepstra } from './mfcc.ts';
import type { Voice } from './voice.ts';

const CELLS = (CEPSTRA * (CEPSTRA + 1)) / 2;
const joinedSum = new Float64Array(CEPSTRA);
const joinedProducts = new Float64Array(CELLS);
const matrix = new Float64Array(CELLS);

/**
 * A Gaussian with full covariance over cepstra. Compared by the Bayesian information criterion (Chen and Gopalakrishnan
 * 1998): the gain of two Gaussians over one, relative to the cost of the second.
 */
export class GaussianVoice implements Voice<GaussianVoice> {
  readonly frames: number;
  readonly #sum: Float64Array;
  /** Lower triangle of the sum of outer products, row by row. */
  readonly #products: Float64Array;
  readonly #logDeterminant: number;

  private constructor(frames: number, sum: Float64Array, products: Float64Array) {
    this.frames = frames;
    this.#sum = sum;
    this.#products = products;
    this.#logDeterminant = logDeterminantOf(frames, sum, products);
  }

  static of(cepstra: Cepstra, frames: Iterable<number>): GaussianVoice {
    const sum = new Float64Array(CEPSTRA);
    const products = new Float64Array(CELLS);
    let count = 0;
    for (const frame of frames) {
      const at = frame * CEPSTRA;
      let cell = 0;
      for (let row = 0; row < CEPSTRA; row++) {
        const value = cepstra.values[at + row]!;
        sum[row] = sum[row]! + value;
        for (let column = 0; column <= row; column++) {
          products[cell] = products[cell]! + value * cepstra.values[at + column]!;
          cell += 1;
        }
      }
      count += 1;
    }
    return new GaussianVoice(count, sum, products);
  }

  distanceTo(other: GaussianVoice): number {
    const frames = this.frames + other.frames;
    for (let index = 0; index < CEPSTRA; index++) joinedSum[index] = this.#sum[index]! + other.#sum[index]!;
    for (let cell = 0; cell < CELLS; cell++) joinedProducts[cell] = this.#products[cell]! + other.#products[cell]!;
    const gain =
      (frames * logDeterminantOf(frames, joinedSum, joinedProducts) -
        this.frames * this.#logDeterminant -
        other.frames * other.#logDeterminant) /
      2;
    // The effective number of frames: beside a short stretch, a longer one adds little evidence.
    const compared = (this.frames * other.frames) / Math.max(1, frames);
    return gain / (PENALTY_WEIGHT * PARAMETERS * 0.5 * Math.log(Math.max(2, compared)));
  }

  joinedWith(other: GaussianVoice): GaussianVoice {
    const sum = this.#sum.map((value, index) => value + other.#sum[index]!);
    const products = this.#products.map((value, index) => value + other.#products[index]!);
    return new GaussianVoice(this.frames + other.frames, sum, products);
  }
}

/** Neighbouring frames share samples, so they are less independent than the criterion assumes. */
const PENALTY_WEIGHT = 2.6;
const PARAMETERS = CEPSTRA + CELLS;
/** Minimum variance of a cepstrum, to which few frames are regularised: a few dozen do not span the space. */
const PRIOR_VARIANCE = 0.2;
const PRIOR_FRAMES = 20;

function logDeterminantOf(frames: number, sum: Float64Array, products: Float64Array): number {
  if (frames === 0) return 0;
  let cell = 0;
  for (let row = 0; row < CEPSTRA; row++) {
    for (let column = 0; column <= row; column++) {
      const scatter = products[cell]! - (sum[row]! * sum[column]!) / frames;
      matrix[cell] = (scatter + (row === column ? PRIOR_FRAMES * PRIOR_VARIANCE : 0)) / (frames + PRIOR_FRAMES);
      cell += 1;
    }
  }
  return logDeterminant();
}

/** Log determinant of `matrix`, which must be positive definite, by its Cholesky factor. Overwrites it. */
function logDeterminant(): number {
  let sum = 0;
  for (let row = 0; row < CEPSTRA; row++) {
    const rowAt = (row * (row + 1)) / 2;
    for (let column = 0; column <= row; column++) {
      const columnAt = (column * (column + 1)) / 2;
      let value = matrix[rowAt + column]!;
      for (let k = 0; k < column; k++) value -= matrix[rowAt + k]! * matrix[columnAt + k]!;
      if (column < row) {
        matrix[rowAt + column] = value / matrix[columnAt + column]!;
      } else {
        // Rounding may make a variance zero.
        const variance = Math.max(value, 1e-9);
        matrix[rowAt + row] = Math.sqrt(variance);
        sum += Math.log(variance);
      }
    }
  }
  return sum;
}
