/** The part of sherpa-onnx-node (1.13) that we use; the package has no types of its own. */
declare module 'sherpa-onnx-node' {
  export interface Waveform {
    samples: Float32Array;
    sampleRate: number;
  }

  export interface OnlineStream {
    acceptWaveform(waveform: Waveform): void;
    inputFinished(): void;
  }

  export interface OfflineStream {
    acceptWaveform(waveform: Waveform): void;
  }

  export class OnlineRecognizer {
    constructor(config: object);
    createStream(): OnlineStream;
    isReady(stream: OnlineStream): boolean;
    decode(stream: OnlineStream): void;
    getResult(stream: OnlineStream): unknown;
  }

  export class OfflineRecognizer {
    constructor(config: object);
    createStream(hotwords?: string): OfflineStream;
    setConfig(config: object): void;
    decode(stream: OfflineStream): void;
    getResult(stream: OfflineStream): unknown;
  }

  export class SpokenLanguageIdentification {
    constructor(config: object);
    createStream(): OfflineStream;
    /** Two letters, or '' if unknown. */
    compute(stream: OfflineStream): string;
  }

  export class OfflinePunctuation {
    constructor(config: object);
    addPunct(text: string): string;
  }

  export class OnlinePunctuation {
    constructor(config: object);
    addPunct(text: string): string;
  }

  export class SpeakerEmbeddingExtractor {
    constructor(config: object);
    createStream(): OnlineStream;
    isReady(stream: OnlineStream): boolean;
    compute(stream: OnlineStream, enableExternalBuffer: boolean): Float32Array;
  }

  export interface GeneratedPart {
    samples: Float32Array;
  }

  export interface GenerateOptions {
    text: string;
    enableExternalBuffer: boolean;
    generationConfig: object;
    /** Called about once per sentence. Returns whether to continue. */
    onProgress: (part: GeneratedPart) => boolean;
  }

  export class OfflineTts {
    readonly sampleRate: number;
    readonly numSpeakers: number;
    constructor(config: object);
    /** The synchronous variant exits the process if there is nothing to say. */
    generateAsync(options: GenerateOptions): Promise<GeneratedPart>;
  }

  const sherpa: {
    OnlineRecognizer: typeof OnlineRecognizer;
    OfflineRecognizer: typeof OfflineRecognizer;
    SpokenLanguageIdentification: typeof SpokenLanguageIdentification;
    OfflinePunctuation: typeof OfflinePunctuation;
    OnlinePunctuation: typeof OnlinePunctuation;
    SpeakerEmbeddingExtractor: typeof SpeakerEmbeddingExtractor;
    OfflineTts: typeof OfflineTts;
  };
  export default sherpa;
}
