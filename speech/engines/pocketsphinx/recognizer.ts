import { isDeepStrictEqual } from 'node:util';
import { RECOGNITION_RATE_HZ, type RecognisedWord, type Recognition } from '../../../machines/utterances.ts';
import { hasKeywords, markBoosted } from '../../boosted-words.ts';
import type { ServedRecognizer } from '../../engine-process/served-recognizer.ts';
import { type Hypothesis, type Keyword, RecognizerError, type UtteranceOptions } from '../../recognizer.ts';
import { bandOf } from './audio-band.ts';
import { CepstralMean } from './cepstral-mean.ts';
import type { Decoder } from './decoder.ts';
import { type Band, FRONT_ENDS } from './front-end.ts';
import { textOf, wordsOf } from './words.ts';

export interface PocketsphinxRecognizerOptions {
  /** Such as `pocketsphinx/en-us`. */
  model: string;
  /** Loads the models: 0.4 to 1.7 s, and about 100 MB. */
  createDecoder: (band: Band, keywords: readonly Keyword[]) => Promise<Decoder>;
}

/** Audio is decoded in blocks of this size, so that the text does not depend on how it is written. */
const BLOCK_SAMPLES = RECOGNITION_RATE_HZ / 10;
/**
 * How much audio is buffered before decoding, which needs the cepstral mean: of a file the whole utterance, within
 * reason. Measured on changing speakers, wideband, telephone and noise together: 0.86 of the words wrong with the mean
 * of the model, 0.66 with one learnt from the first frame on, 0.56 with the utterance's own.
 */
const BAND_DETECTION_MS = { live: 2000, file: 30_000 };
/** Digital silence has no logarithm. A random ±3 of 32,768 is inaudible, and also improves telephone speech. */
const DITHER = 3;

/** Recognises one utterance at a time, with a decoder for the band of its audio. */
export class PocketsphinxRecognizer implements ServedRecognizer {
  readonly #options: PocketsphinxRecognizerOptions;
  /** Decoders without keywords. The telephone one is loaded at once, the other on first use. */
  readonly #plain = new Map<Band, Promise<Decoder>>();
  /** Decoder for the keywords and band of the last utterance with keywords. */
  #boosted: { band: Band; keywords: readonly Keyword[]; decoder: Decoder } | null = null;
  #lastBand: Band = 'telephone';
  #utterance: Utterance | null = null;

  static async create(options: PocketsphinxRecognizerOptions): Promise<PocketsphinxRecognizer> {
    const recognizer = new PocketsphinxRecognizer(options);
    await recognizer.#plainDecoder(recognizer.#lastBand);
    return recognizer;
  }

  private constructor(options: PocketsphinxRecognizerOptions) {
    this.#options = options;
  }

  async begin({ language, keywords, isLive }: UtteranceOptions): Promise<void> {
    if (language !== null && language !== 'en') {
      throw new RecognizerError('unsupported_language', `${this.#options.model} understands English only`);
    }
    await this.cancel();
    // Loads the decoder ahead of decoding. The band rarely changes.
    await this.#decoder(this.#lastBand, keywords);
    this.#utterance = new Utterance({
      decoderFor: (band) => {
        this.#lastBand = band;
        return this.#decoder(band, keywords);
      },
      unboostedDecoder: () => this.#plainDecoder(this.#lastBand),
      keywords,
      isLive,
    });
  }

  async write(samples: Int16Array<ArrayBuffer>): Promise<void> {
    await this.#open().write(samples);
  }

  async pause(): Promise<void> {
    await this.#open().pause();
  }

  async hypothesis(): Promise<Hypothesis | null> {
    const words = this.#open().words();
    return words.length === 0 ? null : { text: textOf(words), words };
  }

  async finish(): Promise<Recognition> {
    const utterance = this.#open();
    this.#utterance = null;
    const words = await utterance.finish();
    const confidences = words.flatMap(({ confidence }) => (confidence === null ? [] : [confidence]));
    return {
      text: textOf(words),
      words,
      language: 'en',
      languageProbability: null,
      confidence:
        confidences.length === 0 ? null : confidences.reduce((sum, each) => sum + each, 0) / confidences.length,
      model: this.#options.model,
    };
  }

  async cancel(): Promise<void> {
    const utterance = this.#utterance;
    this.#utterance = null;
    utterance?.abandon();
  }

  async close(): Promise<void> {
    await this.cancel();
    this.#boosted?.decoder.close();
    for (const decoder of await Promise.all(this.#plain.values())) decoder.close();
  }

  #open(): Utterance {
    if (this.#utterance === null) throw new Error('no utterance was begun');
    return this.#utterance;
  }

  #decoder(band: Band, keywords: readonly Keyword[]): Promise<Decoder> {
    return keywords.length === 0 ? this.#plainDecoder(band) : this.#boostedDecoder(band, keywords);
  }

  #plainDecoder(band: Band): Promise<Decoder> {
    const known = this.#plain.get(band);
    if (known !== undefined) return known;
    const loading = this.#options.createDecoder(band, []);
    this.#plain.set(band, loading);
    loading.catch(() => this.#plain.delete(band));
    return loading;
  }

  async #boostedDecoder(band: Band, keywords: readonly Keyword[]): Promise<Decoder> {
    const last = this.#boosted;
    if (last?.band === band && isDeepStrictEqual(last.keywords, keywords)) return last.decoder;
    this.#boosted = null;
    last?.decoder.close();
    const decoder = await this.#options.createDecoder(band, keywords);
    this.#boosted = { band, keywords, decoder };
    return decoder;
  }
}

interface UtteranceDependencies {
  decoderFor: (band: Band) => Promise<Decoder>;
  /** For the band of the last utterance. */
  unboostedDecoder: () => Promise<Decoder>;
  keywords: readonly Keyword[];
  isLive: boolean;
}

/**
 * Buffers audio until decoding begins, then decodes it in blocks. Decoding ends with two more passes, which take a
 * tenth of the audio's duration. So each phrase is decoded separately, and concluded in the pause after it.
 */
class Utterance {
  readonly #dependencies: UtteranceDependencies;
  readonly #bandDetectionSamples: number;
  #block = new Int16Array(BLOCK_SAMPLES);
  #blockSamples = 0;
  /** Blocks waiting for decoding to begin. */
  readonly #waiting: Int16Array<ArrayBuffer>[] = [];
  /** Total over all blocks. */
  #samples = 0;
  /** Decoded blocks of the phrase, if there are keywords. */
  #decoded: Int16Array<ArrayBuffer>[] = [];
  #phraseStart = 0;
  /** Words of concluded phrases. */
  readonly #words: RecognisedWord[] = [];
  /** Set when decoding begins, because the band is known then. */
  #decoder: Decoder | null = null;
  #mean: CepstralMean | null = null;
  #isDecoding = false;
  #noise = 1;

  constructor(dependencies: UtteranceDependencies) {
    this.#dependencies = dependencies;
    this.#bandDetectionSamples =
      (BAND_DETECTION_MS[dependencies.isLive ? 'live' : 'file'] * RECOGNITION_RATE_HZ) / 1000;
  }

  async write(samples: Int16Array): Promise<void> {
    for (const sample of samples) {
      this.#block[this.#blockSamples++] = Math.max(-32_768, Math.min(32_767, sample + this.#dither()));
      if (this.#blockSamples < BLOCK_SAMPLES) continue;
      this.#takeBlock();
      if (this.#samples >= this.#bandDetectionSamples) await this.#decodeWaiting();
    }
  }

  words(): RecognisedWord[] {
    return this.#isDecoding ? [...this.#words, ...this.#wordsOf(this.#decoder!, false)] : this.#words;
  }

  /** Concludes the phrase. */
  async pause(): Promise<void> {
    this.#takeBlock();
    if (this.#samples === this.#phraseStart) return;
    await this.#decodeWaiting();
    this.#endUtterance();
    this.#words.push(...(await this.#marked(this.#wordsOf(this.#decoder!, true))));
    this.#decoded = [];
    this.#phraseStart = this.#samples;
  }

  async finish(): Promise<RecognisedWord[]> {
    await this.pause();
    return this.#words;
  }

  abandon(): void {
    if (this.#isDecoding) this.#endUtterance();
  }

  #takeBlock(): void {
    if (this.#blockSamples === 0) return;
    this.#waiting.push(this.#block.slice(0, this.#blockSamples));
    this.#samples += this.#blockSamples;
    this.#blockSamples = 0;
  }

  async #decodeWaiting(): Promise<void> {
    if (this.#decoder === null) await this.#begin();
    if (!this.#isDecoding) this.#decoder!.startUtterance();
    this.#isDecoding = true;
    for (const block of this.#waiting) this.#mean!.add(block);
    const mean = this.#mean!.mean();
    for (const block of this.#waiting.splice(0)) {
      // Before each block, because the decoder replaces it by its own estimate, which includes earlier utterances.
      this.#decoder!.setCepstralMean(mean);
      this.#decoder!.process(block);
      if (this.#dependencies.keywords.length > 0) this.#decoded.push(block);
    }
  }

  async #begin(): Promise<void> {
    const band = bandOf(this.#waiting);
    this.#decoder = await this.#dependencies.decoderFor(band);
    this.#mean = new CepstralMean(FRONT_ENDS[band]);
  }

  #endUtterance(): void {
    this.#isDecoding = false;
    this.#decoder!.endUtterance();
  }

  /** Decodes again without the boost only if a word may result from it. */
  async #marked(words: RecognisedWord[]): Promise<RecognisedWord[]> {
    const { keywords, unboostedDecoder } = this.#dependencies;
    if (!hasKeywords(words, keywords)) return words;
    return markBoosted(words, { unboosted: this.#again(await unboostedDecoder()), keywords });
  }

  /** Words that another decoder recognises in the same phrase. */
  #again(decoder: Decoder): RecognisedWord[] {
    const mean = this.#mean!.mean();
    decoder.startUtterance();
    for (const block of this.#decoded) {
      decoder.setCepstralMean(mean);
      decoder.process(block);
    }
    decoder.endUtterance();
    return this.#wordsOf(decoder, true);
  }

  /** Words of the phrase, in utterance time. */
  #wordsOf(decoder: Decoder, hasPosteriors: boolean): RecognisedWord[] {
    const startMs = millisecondsOf(this.#phraseStart);
    const durationMs = millisecondsOf(this.#samples) - startMs;
    return wordsOf(decoder.segments(), { durationMs, hasPosteriors }).map((word) => ({
      ...word,
      startMs: startMs + word.startMs,
      endMs: startMs + word.endMs,
    }));
  }

  /** Reproducible noise from a linear congruential generator. */
  #dither(): number {
    this.#noise = (Math.imul(this.#noise, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.round((this.#noise / 2 ** 32 - 0.5) * 2 * DITHER);
  }
}

function millisecondsOf(samples: number): number {
  return (samples / RECOGNITION_RATE_HZ) * 1000;
}
