import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { RecognizerConfig } from './recognizer-config.ts';

/**
 * A streaming recognition model, loaded once per process through sherpa-onnx's C API (c-api.h). The Node package cannot
 * set hotwords per stream, so that new hotwords would require loading the model again.
 */
export class OnlineModel {
  readonly #library: Library;
  readonly #recognizer: unknown;

  /** Loads the model. @throws Error if the library rejects it; other damage exits this process */
  constructor(config: RecognizerConfig) {
    this.#library = onlineLibrary();
    this.#recognizer = this.#library.createRecognizer(config);
    if (this.#recognizer === null) throw new Error('sherpa-onnx refused the model');
  }

  /** `hotwords`: from `hotwordsOf`; '' for none. */
  createStream(hotwords: string): OnlineStream {
    const library = this.#library;
    const stream =
      hotwords === ''
        ? library.createStream(this.#recognizer)
        : library.createStreamWithHotwords(this.#recognizer, hotwords);
    return new OnlineStream({ library, recognizer: this.#recognizer, stream });
  }
}

/** One utterance. */
export class OnlineStream {
  readonly #library: Library;
  readonly #recognizer: unknown;
  readonly #stream: unknown;
  #isClosed = false;

  constructor({ library, recognizer, stream }: { library: Library; recognizer: unknown; stream: unknown }) {
    this.#library = library;
    this.#recognizer = recognizer;
    this.#stream = stream;
  }

  /** Adds samples and decodes complete chunks. */
  accept({ samples, sampleRate }: { samples: Float32Array; sampleRate: number }): void {
    this.#library.acceptWaveform(this.#stream, sampleRate, samples, samples.length);
    this.#decode();
  }

  /** Decodes the rest. Nothing may follow. */
  finish(): void {
    this.#library.inputFinished(this.#stream);
    this.#decode();
  }

  /** In sherpa-onnx's format. */
  result(): unknown {
    return JSON.parse(this.#library.resultAsJson(this.#recognizer, this.#stream));
  }

  /** Idempotent. */
  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#library.destroyStream(this.#stream);
  }

  #decode(): void {
    while (this.#library.isReady(this.#recognizer, this.#stream) !== 0) {
      this.#library.decode(this.#recognizer, this.#stream);
    }
  }
}

type Library = ReturnType<typeof loadLibrary>;
let loaded: Library | null = null;

/** Once per process: koffi cannot define a type twice. */
function onlineLibrary(): Library {
  loaded ??= loadLibrary();
  return loaded;
}

function loadLibrary() {
  const require = createRequire(import.meta.url);
  const koffi: typeof import('koffi') = require('koffi');
  // The Node package's own library, from its platform package.
  const platform = `${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`;
  const besideNode = createRequire(require.resolve('sherpa-onnx-node'));
  const folder = dirname(besideNode.resolve(`sherpa-onnx-${platform}/package.json`));
  const library = koffi.load(join(folder, LIBRARY_FILES[process.platform] ?? LIBRARY_FILES.linux!));
  const of = <Answer>(declaration: string): ((...values: unknown[]) => Answer) => library.func(declaration);
  const Config = configType(koffi);
  koffi.alias('OnlineRecognizerConfig', Config);
  koffi.disposable('OnlineResultJson', 'const char *', of('void SherpaOnnxDestroyOnlineStreamResultJson(void *json)'));
  return {
    createRecognizer: of<unknown>('void *SherpaOnnxCreateOnlineRecognizer(OnlineRecognizerConfig *config)'),
    createStream: of<unknown>('void *SherpaOnnxCreateOnlineStream(void *recognizer)'),
    createStreamWithHotwords: of<unknown>(
      'void *SherpaOnnxCreateOnlineStreamWithHotwords(void *recognizer, const char *hotwords)',
    ),
    destroyStream: of<void>('void SherpaOnnxDestroyOnlineStream(void *stream)'),
    acceptWaveform: of<void>(
      'void SherpaOnnxOnlineStreamAcceptWaveform(void *stream, int32 rate, const float *samples, int32 count)',
    ),
    inputFinished: of<void>('void SherpaOnnxOnlineStreamInputFinished(void *stream)'),
    isReady: of<number>('int32 SherpaOnnxIsOnlineStreamReady(void *recognizer, void *stream)'),
    decode: of<void>('void SherpaOnnxDecodeOnlineStream(void *recognizer, void *stream)'),
    resultAsJson: of<string>('OnlineResultJson SherpaOnnxGetOnlineStreamResultAsJson(void *recognizer, void *stream)'),
  };
}

const LIBRARY_FILES: Readonly<Partial<Record<NodeJS.Platform, string>>> = {
  linux: 'libsherpa-onnx-c-api.so',
  darwin: 'libsherpa-onnx-c-api.dylib',
  win32: 'sherpa-onnx-c-api.dll',
};

/** SherpaOnnxOnlineRecognizerConfig of version 1.13, the pinned one. */
function configType(koffi: typeof import('koffi')) {
  const files = (...names: string[]) => koffi.struct(Object.fromEntries(names.map((name) => [name, 'const char *'])));
  return koffi.struct({
    featConfig: koffi.struct({ sampleRate: 'int32', featureDim: 'int32' }),
    modelConfig: koffi.struct({
      transducer: files('encoder', 'decoder', 'joiner'),
      paraformer: files('encoder', 'decoder'),
      zipformer2Ctc: files('model'),
      tokens: 'const char *',
      numThreads: 'int32',
      provider: 'const char *',
      debug: 'int32',
      modelType: 'const char *',
      modelingUnit: 'const char *',
      bpeVocab: 'const char *',
      tokensBuf: 'const char *',
      tokensBufSize: 'int32',
      nemoCtc: files('model'),
      toneCtc: files('model'),
    }),
    decodingMethod: 'const char *',
    maxActivePaths: 'int32',
    enableEndpoint: 'int32',
    rule1MinTrailingSilence: 'float',
    rule2MinTrailingSilence: 'float',
    rule3MinUtteranceLength: 'float',
    hotwordsFile: 'const char *',
    hotwordsScore: 'float',
    ctcFstDecoderConfig: koffi.struct({ graph: 'const char *', maxActive: 'int32' }),
    ruleFsts: 'const char *',
    ruleFars: 'const char *',
    blankPenalty: 'float',
    hotwordsBuf: 'const char *',
    hotwordsBufSize: 'int32',
    homophones: files('dictDir', 'lexicon', 'ruleFsts'),
    // Zero padding, in case a later version reads beyond the end.
    beyond: koffi.array('uint8', 256),
  });
}
