import { isDeepStrictEqual } from 'node:util';
import { RECOGNITION_RATE_HZ, type RecognisedWord, type Recognition } from '../../../machines/utterances.ts';
import { hasKeywords, markBoosted } from '../../boosted-words.ts';
import type { ServedRecognizer } from '../../engine-process/served-recognizer.ts';
import { type Hypothesis, type Keyword, RecognizerError, type UtteranceOptions } from '../../recognizer.ts';
import { CepstralMean } from './cepstral-mean.ts';
import type { Decoder } from './decoder.ts';
import { isClear, lacksUpperBand, UpperBand } from './upper-band.ts';
import { textOf, wordsOf } from './words.ts';

export interface PocketsphinxRecognizerOptions {
  /** Such as `pocketsphinx/en-us`. */
  model: string;
  /** Loads the model; again for other keywords, which it takes a fraction of a second for. */
  createDecoder: (keywords: readonly Keyword[]) => Decoder | Promise<Decoder>;
}

/** Audio is decoded in blocks of this size however it is written, so that the text does not depend on that. */
const BLOCK_SAMPLES = RECOGNITION_RATE_HZ / 10;
/**
 * How much is heard before decoding begins, since the cepstral mean must be known by then: of a file all of the utterance, within
 * reason. Measured on changing speakers, wideband, telephone and noise together: 0.86 of the words wrong with the mean of the
 * model, 0.66 with one that is learnt from the first frame on, 0.56 with the utterance's own.
 */
const HEARD_FIRST_MS = { live: 2000, file: 30_000 };
/** A live utterance that stops for so long is probably over. The pause that must follow before it counts as over is time to decode it. */
const PAUSE_MS = 150;
/** Digital silence has no logarithm. A random ±3 of 32,768 is inaudible, and helps on telephone speech, too. */
const DITHER = 3;

/** One utterance after the other through a decoder, which remembers nothing of the last. */
export class PocketsphinxRecognizer implements ServedRecognizer {
  readonly #options: PocketsphinxRecognizerOptions;
  /** Knows no keywords. */
  readonly #plain: Decoder;
  /** Knows those that were asked for last. */
  #boosted: { keywords: readonly Keyword[]; decoder: Decoder } | null = null;
  #utterance: Utterance | null = null;

  static async create(options: PocketsphinxRecognizerOptions): Promise<PocketsphinxRecognizer> {
    return new PocketsphinxRecognizer(options, await options.createDecoder([]));
  }

  private constructor(options: PocketsphinxRecognizerOptions, plain: Decoder) {
    this.#options = options;
    this.#plain = plain;
  }

  async begin({ language, keywords, isLive }: UtteranceOptions): Promise<void> {
    if (language !== null && language !== 'en') {
      throw new RecognizerError('unsupported_language', `${this.#options.model} understands English only`);
    }
    await this.cancel();
    const boosted = keywords.length === 0 ? null : await this.#boostedBy(keywords);
    this.#utterance = new Utterance({ decoder: boosted ?? this.#plain, isLive, isKept: boosted !== null });
  }

  async write(samples: Int16Array<ArrayBuffer>): Promise<void> {
    this.#open().write(samples);
  }

  async hypothesis(): Promise<Hypothesis | null> {
    const words = this.#open().words();
    return words.length === 0 ? null : { text: textOf(words), words };
  }

  async finish(): Promise<Recognition> {
    const utterance = this.#open();
    this.#utterance = null;
    const words = this.#marked(utterance.finish(), utterance);
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
    this.#utterance?.abandon();
    this.#utterance = null;
  }

  async close(): Promise<void> {
    await this.cancel();
    this.#boosted?.decoder.close();
    this.#plain.close();
  }

  #open(): Utterance {
    if (this.#utterance === null) throw new Error('no utterance was begun');
    return this.#utterance;
  }

  async #boostedBy(keywords: readonly Keyword[]): Promise<Decoder> {
    if (isDeepStrictEqual(this.#boosted?.keywords, keywords)) return this.#boosted!.decoder;
    this.#boosted?.decoder.close();
    this.#boosted = null;
    this.#boosted = { keywords, decoder: await this.#options.createDecoder(keywords) };
    return this.#boosted.decoder;
  }

  /** Only what may come of the boost is decoded again without it. */
  #marked(words: RecognisedWord[], utterance: Utterance): RecognisedWord[] {
    const { decoder, keywords } = this.#boosted ?? {};
    if (utterance.decoder !== decoder || !hasKeywords(words, keywords!)) return words;
    const unboosted = utterance.again(this.#plain);
    return markBoosted(words, { unboosted, keywords: keywords! });
  }
}

/** What is heard is kept until decoding begins, then decoded block by block. */
class Utterance {
  readonly decoder: Decoder;
  /** What was decoded, if it is kept to be decoded again. */
  readonly #decoded: Int16Array<ArrayBuffer>[] | null;
  readonly #isLive: boolean;
  readonly #heardFirstSamples: number;
  readonly #mean = new CepstralMean();
  readonly #waiting: Int16Array<ArrayBuffer>[] = [];
  #block = new Int16Array(BLOCK_SAMPLES);
  #blockSamples = 0;
  #samples = 0;
  #isDecoding = false;
  /** Of a telephone's audio, which is known by the time decoding begins. */
  #upperBand: UpperBand | null = null;
  #noise = 1;
  #pause: NodeJS.Timeout | undefined;

  constructor({ decoder, isLive, isKept }: { decoder: Decoder; isLive: boolean; isKept: boolean }) {
    this.decoder = decoder;
    this.#isLive = isLive;
    this.#decoded = isKept ? [] : null;
    this.#heardFirstSamples = (HEARD_FIRST_MS[isLive ? 'live' : 'file'] * RECOGNITION_RATE_HZ) / 1000;
  }

  write(samples: Int16Array): void {
    for (const sample of samples) {
      this.#block[this.#blockSamples++] = Math.max(-32_768, Math.min(32_767, sample + this.#dither()));
      if (this.#blockSamples === BLOCK_SAMPLES) this.#takeBlock();
    }
    this.#samples += samples.length;
    clearTimeout(this.#pause);
    if (this.#isLive && !this.#isDecoding) this.#pause = setTimeout(() => this.#startDecoding(), PAUSE_MS);
  }

  words(): RecognisedWord[] {
    return this.#isDecoding ? this.#wordsOf(false) : [];
  }

  finish(): RecognisedWord[] {
    clearTimeout(this.#pause);
    this.#takeBlock();
    this.#startDecoding();
    this.decoder.endUtterance();
    return this.#wordsOf(true);
  }

  /** The words that another decoder recognises in the same audio, once it was finished. */
  again(decoder: Decoder): RecognisedWord[] {
    const mean = this.#mean.mean();
    decoder.startUtterance();
    for (const block of this.#decoded ?? []) {
      decoder.setCepstralMean(mean);
      decoder.process(block);
    }
    decoder.endUtterance();
    return wordsOf(decoder.segments(), { durationMs: this.#durationMs, hasPosteriors: true });
  }

  abandon(): void {
    clearTimeout(this.#pause);
    if (this.#isDecoding) this.decoder.endUtterance();
  }

  #takeBlock(): void {
    const block = this.#block.slice(0, this.#blockSamples);
    if (block.length === 0) return;
    this.#blockSamples = 0;
    this.#waiting.push(block);
    if (this.#isDecoding) this.#decodeWaiting();
    else if (this.#waiting.length * BLOCK_SAMPLES >= this.#heardFirstSamples) this.#startDecoding();
  }

  #startDecoding(): void {
    if (this.#isDecoding) return;
    this.#isDecoding = true;
    if (lacksUpperBand(this.#waiting) && isClear(this.#waiting)) this.#upperBand = new UpperBand();
    this.decoder.startUtterance();
    this.#decodeWaiting();
  }

  #decodeWaiting(): void {
    for (const block of this.#waiting) {
      this.#upperBand?.addTo(block);
      this.#mean.add(block);
    }
    const mean = this.#mean.mean();
    for (const block of this.#waiting.splice(0)) {
      // Again for each: the decoder replaces it by what it has learnt, of other utterances too.
      this.decoder.setCepstralMean(mean);
      this.decoder.process(block);
      this.#decoded?.push(block);
    }
  }

  get #durationMs(): number {
    return (this.#samples / RECOGNITION_RATE_HZ) * 1000;
  }

  #wordsOf(hasPosteriors: boolean): RecognisedWord[] {
    return wordsOf(this.decoder.segments(), { durationMs: this.#durationMs, hasPosteriors });
  }

  /** The same for every utterance: a linear congruential generator. */
  #dither(): number {
    this.#noise = (Math.imul(this.#noise, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.round((this.#noise / 2 ** 32 - 0.5) * 2 * DITHER);
  }
}
