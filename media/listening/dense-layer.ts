import { compileWasm, type WasmMemory } from '../../runtime/assembled-wasm.ts';

/** Assembled from `dense-layer.wat`: SIMD multiplies four weights at once. A test assembles it again. */
export const DENSE_LAYER_WASM =
  'AGFzbQEAAAABCgFgBn9/f39/fQADAgEABQMBABAHEgIGbWVtb3J5AgAFbGF5ZXIAAArcAgHZAgIBfwZ7A0AgAP0ABAAhCCAAQRBqIQD9DAAAAAAAAAAAAAAAAAAAAAAhCSAJIQogCSELIAkhDEEAIQYDQCACIAZq/QAEACEHIAkgByAA/QAEAP3mAf3kASEJIAogByAA/QAEEP3mAf3kASEKIAsgByAA/QAEIP3mAf3kASELIAwgByAA/QAEMP3mAf3kASEMIABBwABqIQAgBkEQaiIGIANJDQALIAkgCv0NAAECAxAREhMEBQYHFBUWFyAJIAr9DQgJCgsYGRobDA0ODxwdHh/95AEhCSALIAz9DQABAgMQERITBAUGBxQVFhcgCyAM/Q0ICQoLGBkaGwwNDg8cHR4f/eQBIQsgBCAF/RMgCCAJIAv9DQABAgMEBQYHEBESExQVFhcgCSAL/Q0ICQoLDA0ODxgZGhscHR4f/eQB/eQB/ekB/QsEACAEQRBqIQQgAUEEayIBDQALCw==';

const instantiate = compileWasm<{
  memory: WasmMemory;
  layer(weights: number, rows: number, input: number, inputBytes: number, output: number, least: number): void;
}>(DENSE_LAYER_WASM);

export interface DenseWeights {
  /** Weights by output. Both dimensions are multiples of 4. */
  rows: readonly Float32Array[];
  biases: Float32Array;
  /** Lowest output: 0 for a ReLU. */
  least: number;
}

/** Computes one frame of a layer. Both arrays come from `DenseMemory.floats`. Allocates nothing. */
export type DenseLayer = (input: Float32Array, output: Float32Array) => void;

/** One megabyte for the layers and frames of a neural network. */
export class DenseMemory {
  readonly #wasm = instantiate();
  #usedBytes = 0;

  /** Allocates zeros. @throws RangeError when the memory is full */
  floats(length: number): Float32Array {
    const floats = new Float32Array(this.#wasm.memory.buffer, this.#usedBytes, length);
    this.#usedBytes += 16 * Math.ceil(length / 4);
    return floats;
  }

  /** @throws RangeError when the memory is full */
  layer({ rows, biases, least }: DenseWeights): DenseLayer {
    const inputs = rows[0]!.length;
    const packed = this.floats(rows.length * (inputs + 1));
    let at = 0;
    for (let row = 0; row < rows.length; row += 4) {
      packed.set(biases.subarray(row, row + 4), at);
      at += 4;
      const four = rows.slice(row, row + 4);
      for (let input = 0; input < inputs; input += 4) {
        for (const weights of four) {
          packed.set(weights.subarray(input, input + 4), at);
          at += 4;
        }
      }
    }
    const { layer } = this.#wasm;
    return (input, output) =>
      layer(packed.byteOffset, rows.length, input.byteOffset, 4 * inputs, output.byteOffset, least);
  }
}
