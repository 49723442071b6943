import sherpa, { type OfflineRecognizer } from 'sherpa-onnx-node';
import { RECOGNITION_RATE_HZ, type Recognition } from '../../../machines/utterances.ts';
import { hasKeywords } from '../../boosted-words.ts';
import type { ServedRecognizer } from '../../engine-process/served-recognizer.ts';
import type { Keyword, UtteranceOptions } from '../../recognizer.ts';
import { hotwordsOf } from './hotwords.ts';
import { hypothesisOf, type RecognisedPiece, recognitionOfPieces } from './recognition-of-pieces.ts';
import { recognizerConfig } from './recognizer-config.ts';
import { parseResult, type SherpaResult } from './sherpa-result.ts';
import { modelName, type RecognizerParts, requireLanguage, silence, toMs, toWaveform } from './utterance-audio.ts';
import { WholePieces } from './whole-pieces.ts';

/** A model that reads an utterance as a whole, or a long one in pieces. */
export class WholeUtteranceRecognizer implements ServedRecognizer {
  readonly #parts: RecognizerParts;
  readonly #recognizer: OfflineRecognizer;
  /** Current setting of the recognizer. */
  #language: string | null = null;
  #utterance: OpenUtterance | null = null;

  constructor(parts: RecognizerParts) {
    this.#parts = parts;
    this.#recognizer = new sherpa.OfflineRecognizer(this.#config());
  }

  async begin(options: UtteranceOptions): Promise<void> {
    const { model, letterCase } = this.#parts;
    this.#utterance = null;
    requireLanguage(model, options.language);
    this.#setLanguage(options.language);
    const hotwords = model.hotwords === null ? '' : hotwordsOf(options.keywords, letterCase);
    this.#utterance = {
      language: options.language,
      keywords: options.keywords,
      hotwords,
      audio: new WholePieces(LONGEST_PIECE_SAMPLES),
      pieces: [],
      samples: 0,
    };
  }

  async write(samples: Int16Array<ArrayBuffer>): Promise<void> {
    const utterance = this.#open();
    for (const piece of utterance.audio.add(toWaveform(samples).samples)) this.#recognise(utterance, piece);
  }

  async hypothesis(): Promise<null> {
    return null;
  }

  async finish(): Promise<Recognition> {
    const { model, letterCase, punctuate } = this.#parts;
    const utterance = this.#open();
    this.#recognise(utterance, utterance.audio.take());
    this.#utterance = null;
    const { languages } = model;
    const { language, keywords, pieces } = utterance;
    const options = { model: modelName(model), languages, language, keywords, letterCase, punctuate };
    return recognitionOfPieces(pieces, options);
  }

  async cancel(): Promise<void> {
    this.#utterance = null;
  }

  async close(): Promise<void> {
    this.#utterance = null;
  }

  #open(): OpenUtterance {
    if (this.#utterance === null) throw new Error('no utterance is open');
    return this.#utterance;
  }

  /** SenseVoice always detects the language itself. */
  #setLanguage(language: string | null): void {
    const { type } = this.#parts.model;
    if (language === this.#language || (type !== 'whisper' && type !== 'canary')) return;
    this.#language = language;
    this.#recognizer.setConfig(this.#config());
  }

  #config(): object {
    const { folder, model } = this.#parts;
    return recognizerConfig(model, { folder, language: this.#language });
  }

  #recognise(utterance: OpenUtterance, samples: Float32Array<ArrayBuffer>): void {
    if (samples.length === 0) return;
    const startMs = toMs(utterance.samples);
    utterance.samples += samples.length;
    const endMs = toMs(utterance.samples);
    const { hotwords, keywords } = utterance;
    const piece = { startMs, endMs, result: this.#resultOf(samples, hotwords), unboosted: null };
    const hasTerm = hotwords !== '' && hasKeywords(hypothesisOf(piece, this.#parts.letterCase).words, keywords);
    // Decodes again without hotwords, to mark the keywords that result from them.
    utterance.pieces.push(hasTerm ? { ...piece, unboosted: this.#resultOf(samples, '') } : piece);
  }

  #resultOf(samples: Float32Array<ArrayBuffer>, hotwords: string): SherpaResult {
    const stream = hotwords === '' ? this.#recognizer.createStream() : this.#recognizer.createStream(hotwords);
    // The library accepts audio once and as a whole, and needs at least one feature window.
    const missing = Math.max(0, LEAST_PIECE_SAMPLES - samples.length);
    const padded = missing === 0 ? samples : new Float32Array([...samples, ...silence(toMs(missing)).samples]);
    stream.acceptWaveform({ samples: padded, sampleRate: RECOGNITION_RATE_HZ });
    this.#recognizer.decode(stream);
    return parseResult(this.#recognizer.getResult(stream), { timesScale: 1 });
  }
}

interface OpenUtterance {
  language: string | null;
  keywords: readonly Keyword[];
  hotwords: string;
  audio: WholePieces;
  pieces: RecognisedPiece[];
  /** Samples recognised so far. */
  samples: number;
}

/** Whisper reads 30 s and drops the rest; the other models degrade beyond it. */
const LONGEST_PIECE_SAMPLES = 28 * RECOGNITION_RATE_HZ;
const LEAST_PIECE_SAMPLES = RECOGNITION_RATE_HZ / 2;
