import type { Recognition } from '../../../machines/utterances.ts';
import type { ServedRecognizer } from '../../engine-process/served-recognizer.ts';
import type { Hypothesis, UtteranceOptions } from '../../recognizer.ts';
import { hotwordsOf } from './hotwords.ts';
import { OnlineModel } from './online-library.ts';
import { hypothesisOf, recognitionOfPieces } from './recognition-of-pieces.ts';
import { recognizerConfig } from './recognizer-config.ts';
import { StreamingUtterance } from './streaming-utterance.ts';
import { modelName, type RecognizerParts, requireLanguage } from './utterance-audio.ts';

/** A streaming model, for one utterance at a time. Recognizers from `beside` share the model. */
export class StreamingRecognizer implements ServedRecognizer {
  readonly #parts: RecognizerParts;
  readonly #model: OnlineModel;
  #utterance: StreamingUtterance | null = null;

  constructor(parts: RecognizerParts, model?: OnlineModel) {
    this.#parts = parts;
    this.#model = model ?? new OnlineModel(recognizerConfig(parts.model, { folder: parts.folder, language: null }));
  }

  beside(): StreamingRecognizer {
    return new StreamingRecognizer(this.#parts, this.#model);
  }

  async begin(options: UtteranceOptions): Promise<void> {
    const { model, letterCase } = this.#parts;
    await this.cancel();
    requireLanguage(model, options.language);
    const hotwords = model.hotwords === null ? '' : hotwordsOf(options.keywords, letterCase);
    this.#utterance = new StreamingUtterance(this.#model, { model, letterCase, hotwords, options });
  }

  async write(samples: Int16Array<ArrayBuffer>): Promise<void> {
    this.#open().write(samples);
  }

  async hypothesis(): Promise<Hypothesis | null> {
    const hypothesis = hypothesisOf(this.#open().resultSoFar(), this.#parts.letterCase);
    return hypothesis.text === '' ? null : hypothesis;
  }

  async finish(): Promise<Recognition> {
    const { model, letterCase, punctuate } = this.#parts;
    const utterance = this.#open();
    const piece = utterance.finish();
    const { language, keywords } = utterance.options;
    await this.cancel();
    const { languages } = model;
    const options = { model: modelName(model), languages, language, keywords, letterCase, punctuate };
    return recognitionOfPieces([piece], options);
  }

  async cancel(): Promise<void> {
    this.#utterance?.close();
    this.#utterance = null;
  }

  async close(): Promise<void> {
    await this.cancel();
  }

  #open(): StreamingUtterance {
    if (this.#utterance === null) throw new Error('no utterance is open');
    return this.#utterance;
  }
}
