import OpenAI from 'openai';
import { RECOGNITION_RATE_HZ, type Recognition } from '../../../machines/utterances.ts';
import { hasKeywords, markBoosted } from '../../boosted-words.ts';
import {
  type Keyword,
  type Recognizer,
  type RecognizerDescription,
  RecognizerError,
  type UtteranceOptions,
} from '../../recognizer.ts';
import { serverRefusal } from './server-refusal.ts';
import { type TranscriptionContext, toRecognition } from './transcription.ts';
import { encodeWav } from './utterance-wav.ts';

/** State shared by all recognizers of a server. */
export interface TranscriptionServer {
  client: OpenAI;
  /** The key, which must not appear in errors. */
  secret: string | null;
  /** Whether the server supports `verbose_json`, with words and times. Detected by trying. */
  supportsVerboseJson: boolean;
}

/** Buffers an utterance and sends it to the server at its end. */
export class OpenAiRecognizer implements Recognizer {
  readonly description: RecognizerDescription;
  readonly #server: TranscriptionServer;
  #utterance: OpenUtterance | null = null;

  constructor(description: RecognizerDescription, server: TranscriptionServer) {
    this.description = description;
    this.#server = server;
  }

  async begin(options: UtteranceOptions): Promise<void> {
    await this.cancel();
    const { languages } = this.description;
    if (options.language !== null && !languages.includes(options.language)) {
      const message = `${this.description.model} is not set up for ${options.language}`;
      throw new RecognizerError('unsupported_language', message);
    }
    this.#utterance = { options, blocks: [], samples: 0, abort: new AbortController() };
  }

  async write(samples: Int16Array<ArrayBuffer>): Promise<void> {
    const utterance = this.#open();
    if (utterance.samples + samples.length > MOST_SAMPLES) {
      throw new RecognizerError('unavailable', 'the utterance is longer than a transcription server takes');
    }
    utterance.blocks.push(samples);
    utterance.samples += samples.length;
  }

  async hypothesis(): Promise<null> {
    return null;
  }

  async finish(): Promise<Recognition> {
    const utterance = this.#open();
    const { options, samples } = utterance;
    const context = {
      model: `openai/${this.description.model}`,
      language: options.language,
      fallbackLanguage: this.description.languages[0]!,
      durationMs: (samples * 1000) / RECOGNITION_RATE_HZ,
    };
    try {
      // Servers reject shorter audio.
      if (samples < LEAST_SAMPLES) return toRecognition({ text: '' }, context);
      const prompt = promptOf(options.keywords);
      const { signal } = utterance.abort;
      const startedMs = performance.now();
      const recognition = toRecognition(await this.#transcribe(utterance, { prompt, signal }), context);
      if (prompt === '' || !hasKeywords(recognition.words, options.keywords)) return recognition;
      const withinMs = Math.max(LEAST_MARKING_MS, Math.ceil(2 * (performance.now() - startedMs)));
      return await this.#marked(recognition, utterance, { context, withinMs });
    } catch (error) {
      throw serverRefusal(error, this.#server.secret);
    } finally {
      if (this.#utterance === utterance) this.#utterance = null;
    }
  }

  async cancel(): Promise<void> {
    this.#utterance?.abort.abort();
    this.#utterance = null;
  }

  async close(): Promise<void> {
    await this.cancel();
  }

  #open(): OpenUtterance {
    if (this.#utterance === null) throw new RecognizerError('cancelled', 'no utterance is open');
    return this.#utterance;
  }

  /** Marks the words that result only from the prompt, if the server answers in time. */
  async #marked(
    recognition: Recognition,
    utterance: OpenUtterance,
    { context, withinMs }: { context: TranscriptionContext; withinMs: number },
  ): Promise<Recognition> {
    const { keywords } = utterance.options;
    const signal = AbortSignal.any([utterance.abort.signal, AbortSignal.timeout(withinMs)]);
    try {
      const unboosted = toRecognition(await this.#transcribe(utterance, { prompt: '', signal }), context).words;
      const words = markBoosted(recognition.words, { unboosted, keywords, by: 'order' });
      return { ...recognition, words };
    } catch (error) {
      if (utterance.abort.signal.aborted) throw error;
      // The text is worth more than its marks.
      return recognition;
    }
  }

  async #transcribe(
    { options, blocks }: OpenUtterance,
    { prompt, signal }: { prompt: string; signal: AbortSignal },
  ): Promise<unknown> {
    const { client, supportsVerboseJson } = this.#server;
    const request = {
      file: new File([encodeWav(blocks)], 'utterance.wav', { type: 'audio/wav' }),
      model: this.description.model,
      ...(options.language !== null && { language: options.language }),
      ...(prompt !== '' && { prompt }),
    };
    if (supportsVerboseJson) {
      try {
        const verbose = { ...request, response_format: 'verbose_json', timestamp_granularities: ['word', 'segment'] };
        return await client.audio.transcriptions.create(verbose as VerboseRequest, { signal });
      } catch (error) {
        if (!isRefusedFormat(error)) throw error;
      }
    }
    const answer = await client.audio.transcriptions.create({ ...request, response_format: 'json' }, { signal });
    // The same request works in the other format, so the format was the reason.
    this.#server.supportsVerboseJson = false;
    return answer;
  }
}

interface OpenUtterance {
  options: UtteranceOptions;
  blocks: Int16Array<ArrayBuffer>[];
  samples: number;
  abort: AbortController;
}

type VerboseRequest = OpenAI.Audio.TranscriptionCreateParamsNonStreaming<'verbose_json'>;

/** Servers accept files of 25 MB. */
const MOST_SAMPLES = 24_000_000 / Int16Array.BYTES_PER_ELEMENT;
const LEAST_SAMPLES = RECOGNITION_RATE_HZ / 10;
/** The text waits for its marks as long as two requests took, and at least this long. */
const LEAST_MARKING_MS = 1_000;
/** Whisper reads the last 224 tokens of it. */
const MOST_PROMPT_CHARACTERS = 800;

/** Highest weight last, because a long prompt is cut at its beginning. */
function promptOf(keywords: readonly Keyword[]): string {
  const terms = keywords.filter(({ weight }) => weight > 0).sort((a, b) => a.weight - b.weight);
  let prompt = '';
  for (const { term } of terms.reverse()) {
    const longer = prompt === '' ? term : `${term}, ${prompt}`;
    if (longer.length > MOST_PROMPT_CHARACTERS) break;
    prompt = longer;
  }
  return prompt;
}

function isRefusedFormat(error: unknown): boolean {
  return error instanceof OpenAI.APIError && (error.status === 400 || error.status === 422);
}
