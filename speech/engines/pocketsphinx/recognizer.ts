import { isDeepStrictEqual } from 'node:util';
import { RECOGNITION_RATE_HZ, type RecognisedWord, type Recognition } from '../../../machines/utterances.ts';
import { hasKeywords, markBoosted } from '../../boosted-words.ts';
import type { ServedRecognizer } from '../../engine-process/served-recognizer.ts';
import { type Hypothesis, type Keyword, RecognizerError, type UtteranceOptions } from '../../recognizer.ts';
import { CepstralMean } from './cepstral-mean.ts';
import type { Decoder } from './decoder.ts';
import { type Band, FRONT_ENDS } from './front-end.ts';
import { bandOf } from './heard-band.ts';
import { textOf, wordsOf } from './words.ts';

export interface PocketsphinxRecognizerOptions {
  /** Such as `pocketsphinx/en-us`. */
  model: string;
  /** Loads the models: 0.4 to 1.7 s, and about 100 MB. */
  createDecoder: (band: Band, keywords: readonly Keyword[]) => Promise<Decoder>;
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

/** Recognises one utterance after the other, each with a decoder for the band of its audio. */
export class PocketsphinxRecognizer implements ServedRecognizer {
  readonly #options: PocketsphinxRecognizerOptions;
  /** Without keywords. The telephone's is loaded at once, the other when its band is first heard. */
  readonly #plain = new Map<Band, Promise<Decoder>>();
  /** For the keywords and the band of the last utterance that had keywords. */
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
    // Early, so that it is loaded when decoding begins. Usually the band stays the same.
    await this.#decoder(this.#lastBand, keywords);
    this.#utterance = new Utterance({
      decoderFor: (band) => {
        this.#lastBand = band;
        return this.#decoder(band, keywords);
      },
      keywords,
      isLive,
    });
  }

  async write(samples: Int16Array<ArrayBuffer>): Promise<void> {
    await this.#open().write(samples);
  }

  async hypothesis(): Promise<Hypothesis | null> {
    const words = this.#open().words();
    return words.length === 0 ? null : { text: textOf(words), words };
  }

  async finish(): Promise<Recognition> {
    const utterance = this.#open();
    this.#utterance = null;
    const words = await this.#marked(await utterance.finish(), utterance);
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
    await utterance?.abandon();
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

  /** Only what may come of the boost is decoded again without it. */
  async #marked(words: RecognisedWord[], utterance: Utterance): Promise<RecognisedWord[]> {
    const { keywords } = utterance;
    if (!hasKeywords(words, keywords)) return words;
    const unboosted = utterance.again(await this.#plainDecoder(this.#lastBand));
    return markBoosted(words, { unboosted, keywords });
  }
}

interface UtteranceDependencies {
  decoderFor: (band: Band) => Promise<Decoder>;
  keywords: readonly Keyword[];
  isLive: boolean;
}

/** What is heard is kept until decoding begins, then decoded block by block. */
class Utterance {
  readonly keywords: readonly Keyword[];
  readonly #decoderFor: (band: Band) => Promise<Decoder>;
  /** What was decoded, if it is kept to be decoded again. */
  readonly #decoded: Int16Array<ArrayBuffer>[] | null;
  readonly #isLive: boolean;
  readonly #heardFirstSamples: number;
  readonly #waiting: Int16Array<ArrayBuffer>[] = [];
  #block = new Int16Array(BLOCK_SAMPLES);
  #blockSamples = 0;
  #samples = 0;
  /** Known once decoding begins, as the band is. */
  #decoder: Decoder | null = null;
  #mean: CepstralMean | null = null;
  #beginning: Promise<void> | null = null;
  #noise = 1;
  #pause: NodeJS.Timeout | undefined;

  constructor({ decoderFor, keywords, isLive }: UtteranceDependencies) {
    this.keywords = keywords;
    this.#decoderFor = decoderFor;
    this.#isLive = isLive;
    this.#decoded = keywords.length > 0 ? [] : null;
    this.#heardFirstSamples = (HEARD_FIRST_MS[isLive ? 'live' : 'file'] * RECOGNITION_RATE_HZ) / 1000;
  }

  async write(samples: Int16Array): Promise<void> {
    clearTimeout(this.#pause);
    for (const sample of samples) {
      this.#block[this.#blockSamples++] = Math.max(-32_768, Math.min(32_767, sample + this.#dither()));
      if (this.#blockSamples === BLOCK_SAMPLES) await this.#takeBlock();
    }
    this.#samples += samples.length;
    if (!this.#isLive || this.#beginning !== null) return;
    // The next call waits for the same beginning, and reports its failure.
    this.#pause = setTimeout(() => this.#beginDecoding().catch(() => {}), PAUSE_MS);
  }

  words(): RecognisedWord[] {
    return this.#decoder === null ? [] : this.#wordsOf(this.#decoder, false);
  }

  async finish(): Promise<RecognisedWord[]> {
    clearTimeout(this.#pause);
    await this.#takeBlock();
    await this.#beginDecoding();
    this.#decoder!.endUtterance();
    return this.#wordsOf(this.#decoder!, true);
  }

  /** The words that another decoder recognises in the same audio, once it was finished. */
  again(decoder: Decoder): RecognisedWord[] {
    const mean = this.#mean!.mean();
    decoder.startUtterance();
    for (const block of this.#decoded ?? []) {
      decoder.setCepstralMean(mean);
      decoder.process(block);
    }
    decoder.endUtterance();
    return this.#wordsOf(decoder, true);
  }

  async abandon(): Promise<void> {
    clearTimeout(this.#pause);
    await this.#beginning?.catch(() => {});
    this.#decoder?.endUtterance();
  }

  async #takeBlock(): Promise<void> {
    const block = this.#block.slice(0, this.#blockSamples);
    if (block.length === 0) return;
    this.#blockSamples = 0;
    this.#waiting.push(block);
    if (this.#beginning !== null) {
      await this.#beginning;
      this.#decodeWaiting();
    } else if (this.#waiting.length * BLOCK_SAMPLES >= this.#heardFirstSamples) {
      await this.#beginDecoding();
    }
  }

  #beginDecoding(): Promise<void> {
    this.#beginning ??= this.#begin();
    return this.#beginning;
  }

  async #begin(): Promise<void> {
    const band = bandOf(this.#waiting);
    const decoder = await this.#decoderFor(band);
    decoder.startUtterance();
    this.#decoder = decoder;
    this.#mean = new CepstralMean(FRONT_ENDS[band]);
    this.#decodeWaiting();
  }

  #decodeWaiting(): void {
    for (const block of this.#waiting) this.#mean!.add(block);
    const mean = this.#mean!.mean();
    for (const block of this.#waiting.splice(0)) {
      // Again for each: the decoder replaces it by what it has learnt, of other utterances too.
      this.#decoder!.setCepstralMean(mean);
      this.#decoder!.process(block);
      this.#decoded?.push(block);
    }
  }

  #wordsOf(decoder: Decoder, hasPosteriors: boolean): RecognisedWord[] {
    const durationMs = (this.#samples / RECOGNITION_RATE_HZ) * 1000;
    return wordsOf(decoder.segments(), { durationMs, hasPosteriors });
  }

  /** The same for every utterance: a linear congruential generator. */
  #dither(): number {
    this.#noise = (Math.imul(this.#noise, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.round((this.#noise / 2 ** 32 - 0.5) * 2 * DITHER);
  }
}
