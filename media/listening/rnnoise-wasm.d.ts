/** The used part of the package, which has no types. Samples are floats in 16-bit scale. */
declare module '@echogarden/rnnoise-wasm' {
  export interface Rnnoise {
    /** Replaced when the memory grows. */
    readonly HEAPF32: Float32Array;
    _malloc(bytes: number): number;
    _free(pointer: number): void;
    _rnnoise_create(model: 0): number;
    _rnnoise_destroy(state: number): void;
    _rnnoise_process_frame(state: number, output: number, input: number): number;
  }
  export default function init(): Promise<Rnnoise>;
}
