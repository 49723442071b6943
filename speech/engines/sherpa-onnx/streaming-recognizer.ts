import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import sherpa, { type OnlineRecognizer, type OnlineStream } from 'sherpa-onnx-node';
import type { Recognition } from '../../../machines/utterances.ts';
import type { ServedRecognizer } from '../../engine-process/served-recognizer.ts';
import type { Hypothesis, UtteranceOptions } from '../../recognizer.ts';
import { hotwordLines } from './hotwords.ts';
import { hypothesisOf, recognitionOfPieces, type UnderstoodPiece } from './recognition-of-pieces.ts';
import { recognizerConfig } from './recognizer-config.ts';
import { parseResult } from './sherpa-result.ts';
import { modelName, type RecognizerParts, requireLanguage, silence, toMs, toWaveform } from './utterance-audio.ts';

/** A model that recognises while somebody speaks. */
export class StreamingRecognizer implements ServedRecognizer {
  readonly #parts: RecognizerParts;
  #recognizer: OnlineRecognizer;
  /** Those that the recognizer was made with. */
  #hotwords = '';
  #utterance: { stream: OnlineStream; options: UtteranceOptions; samples: number } | null = null;

  constructor(parts: RecognizerParts) {
    this.#parts = parts;
    this.#recognizer = this.#load();
  }

  async begin(options: UtteranceOptions): Promise<void> {
    const { model, letterCase } = this.#parts;
    this.#utterance = null;
    requireLanguage(model, options.language);
    const hotwords = model.hotwords === null ? '' : hotwordLines(options.keywords, letterCase);
    if (hotwords !== this.#hotwords) {
      this.#hotwords = hotwords;
      this.#recognizer = this.#load();
      collectGarbage();
    }
    this.#utterance = { stream: this.#recognizer.createStream(), options, samples: 0 };
  }

  async write(samples: Int16Array<ArrayBuffer>): Promise<void> {
    const utterance = this.#open();
    utterance.samples += samples.length;
    utterance.stream.acceptWaveform(toWaveform(samples));
    this.#decode(utterance.stream);
  }

  async hypothesis(): Promise<Hypothesis | null> {
    const hypothesis = hypothesisOf(this.#understood(), this.#parts.letterCase);
    return hypothesis.text === '' ? null : hypothesis;
  }

  async finish(): Promise<Recognition> {
    const { model, letterCase, punctuate } = this.#parts;
    const { stream, options, samples } = this.#open();
    if (samples > 0) {
      stream.acceptWaveform(silence(model.chunkFrames * FRAME_MS + BEYOND_LAST_CHUNK_MS));
      stream.inputFinished();
      this.#decode(stream);
    }
    const understood = this.#understood();
    this.#utterance = null;
    const { languages } = model;
    const { language } = options;
    return recognitionOfPieces([understood], { model: modelName(model), languages, language, letterCase, punctuate });
  }

  async cancel(): Promise<void> {
    this.#utterance = null;
  }

  async close(): Promise<void> {
    this.#utterance = null;
  }

  #open() {
    if (this.#utterance === null) throw new Error('no utterance is open');
    return this.#utterance;
  }

  #load(): OnlineRecognizer {
    const { folder, model } = this.#parts;
    return new sherpa.OnlineRecognizer(recognizerConfig(model, { folder, language: null, hotwords: this.#hotwords }));
  }

  #decode(stream: OnlineStream): void {
    while (this.#recognizer.isReady(stream)) this.#recognizer.decode(stream);
  }

  #understood(): UnderstoodPiece {
    const { stream, samples } = this.#open();
    const { type, subsampling } = this.#parts.model;
    // It tells the times of these as if each frame of their output were four of the input, as is true of the others.
    const timesScale = type === 'streaming-nemo-ctc' ? subsampling / 4 : 1;
    const result = parseResult(this.#recognizer.getResult(stream), { timesScale });
    return { startMs: 0, endMs: toMs(samples), result };
  }
}

const FRAME_MS = 10;
/** The last word is told by what follows it. */
const BEYOND_LAST_CHUNK_MS = 200;

/** The model that was replaced lies outside the heap, where V8 does not see how much it holds. */
function collectGarbage(): void {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
}
