import sherpa from 'sherpa-onnx-node';
import { RECOGNITION_RATE_HZ, type Recognition } from '../../../machines/utterances.ts';
import type { ServedRecognizer } from '../../engine-process/served-recognizer.ts';
import type { UtteranceOptions } from '../../recognizer.ts';
import { toLanguageCode } from '../whisper-languages.ts';
import type { LanguageModel } from './installed-models.ts';
import { type LoadRecognizerOptions, loadRecognizer } from './load-recognizer.ts';
import { toWaveform } from './utterance-audio.ts';

/** Argument of the process: one model, or one per language. */
export type SherpaProcessArgument = LoadRecognizerOptions | LanguageSwitchingOptions;

export interface LanguageSwitchingOptions {
  identification: LanguageModel;
  /** The model of each language. The first is the default for other languages. */
  recognizers: readonly { language: string; load: LoadRecognizerOptions }[];
}

/** Detects the spoken language and uses a model of that language. Models load on first use. */
export class LanguageSwitchingRecognizer implements ServedRecognizer {
  readonly #options: LanguageSwitchingOptions;
  readonly #identification: InstanceType<typeof sherpa.SpokenLanguageIdentification>;
  /** By model folder, because a model may support several languages. */
  readonly #loaded = new Map<string, ServedRecognizer>();
  #utterance: { options: UtteranceOptions; buffered: Int16Array<ArrayBuffer>[] } | null = null;
  #chosen: ServedRecognizer | null = null;

  constructor(options: LanguageSwitchingOptions) {
    this.#options = options;
    this.#identification = new sherpa.SpokenLanguageIdentification({
      whisper: options.identification,
      numThreads: 1,
      provider: 'cpu',
      debug: 0,
    });
  }

  async begin(options: UtteranceOptions): Promise<void> {
    await this.cancel();
    this.#utterance = { options, buffered: [] };
    if (options.language !== null) await this.#choose(options.language);
  }

  async write(samples: Int16Array<ArrayBuffer>): Promise<void> {
    if (this.#chosen !== null) return await this.#chosen.write(samples);
    const { buffered } = this.#open();
    buffered.push(samples);
    if (buffered.reduce((sum, { length }) => sum + length, 0) >= ENOUGH_SAMPLES) await this.#choose(this.#identify());
  }

  async hypothesis(): Promise<null> {
    return null;
  }

  async finish(): Promise<Recognition> {
    const { buffered } = this.#open();
    if (this.#chosen === null) await this.#choose(buffered.length === 0 ? this.#fallback() : this.#identify());
    const chosen = this.#chosen!;
    this.#chosen = null;
    this.#utterance = null;
    return await chosen.finish();
  }

  async cancel(): Promise<void> {
    await this.#chosen?.cancel();
    this.#chosen = null;
    this.#utterance = null;
  }

  async close(): Promise<void> {
    await this.cancel();
  }

  #open() {
    if (this.#utterance === null) throw new Error('no utterance is open');
    return this.#utterance;
  }

  #fallback(): string {
    return this.#options.recognizers[0]!.language;
  }

  #identify(): string {
    const stream = this.#identification.createStream();
    // The library accepts audio only once, as a whole.
    stream.acceptWaveform(toWaveform(joined(this.#open().buffered)));
    const detected = toLanguageCode(this.#identification.compute(stream));
    const isOurs = this.#options.recognizers.some(({ language }) => language === detected);
    return detected !== null && isOurs ? detected : this.#fallback();
  }

  async #choose(language: string): Promise<void> {
    const { options, buffered } = this.#open();
    const recognizer = await this.#load(language);
    await recognizer.begin({ ...options, language });
    this.#chosen = recognizer;
    for (const samples of buffered.splice(0)) await recognizer.write(samples);
  }

  async #load(language: string): Promise<ServedRecognizer> {
    const { recognizers } = this.#options;
    const { load } = recognizers.find((recognizer) => recognizer.language === language) ?? recognizers[0]!;
    const recognizer = this.#loaded.get(load.folder) ?? (await loadRecognizer(load));
    this.#loaded.set(load.folder, recognizer);
    return recognizer;
  }
}

/** Whisper needs a few seconds to detect a language, and reads at most thirty. */
const ENOUGH_SAMPLES = 10 * RECOGNITION_RATE_HZ;

function joined(blocks: readonly Int16Array[]): Int16Array {
  const all = new Int16Array(blocks.reduce((sum, { length }) => sum + length, 0));
  let offset = 0;
  for (const block of blocks) {
    all.set(block, offset);
    offset += block.length;
  }
  return all;
}
