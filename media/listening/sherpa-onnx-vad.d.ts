/** The part of the package, which has no types of its own, that is used for voice detection. */
declare module 'sherpa-onnx-node/vad.js' {
  export class Vad {
    constructor(config: object, bufferSizeInSeconds: number);
    acceptWaveform(samples: Float32Array): void;
    isDetected(): boolean;
    clear(): void;
    flush(): void;
    reset(): void;
  }
  const exports: { Vad: typeof Vad };
  export default exports;
}
