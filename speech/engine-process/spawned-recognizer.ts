import type { Recognition } from '../../machines/utterances.ts';
import { FRAME_LIMITS, type JsonValue } from '../../runtime/frames.ts';
import { ProcessError } from '../../runtime/supervised-process.ts';
import {
  type Hypothesis,
  type Recognizer,
  type RecognizerDescription,
  RecognizerError,
  type RecognizerErrorCode,
  type UtteranceOptions,
} from '../recognizer.ts';
import { EngineCallError, EngineProcess, type EngineProcessOptions } from './engine-process.ts';
import { HypothesisAnswer, RecognitionAnswer } from './recognizer-calls.ts';

export interface SpawnRecognizerOptions extends EngineProcessOptions {
  description: RecognizerDescription;
}

/** A recognizer in a child process of its own. After the process exits, every call fails with `crashed`. */
export interface SpawnedRecognizer extends Recognizer {
  readonly pid: number | undefined;
}

/**
 * Starts a child whose `entry` calls `serveRecognizer`, and passes `argument` to it.
 * @throws RecognizerError `crashed`, or what the maker threw
 */
export async function spawnRecognizer(options: SpawnRecognizerOptions): Promise<SpawnedRecognizer> {
  try {
    return new RecognizerProcess(options.description, await EngineProcess.start(options));
  } catch (error) {
    throw toRecognizerError(error);
  }
}

const BLOCK_SAMPLES = FRAME_LIMITS.bodyBytes / Int16Array.BYTES_PER_ELEMENT;

class RecognizerProcess implements SpawnedRecognizer {
  readonly description: RecognizerDescription;
  readonly #process: EngineProcess;
  readonly #place: number;
  #nextPlace = 1;

  constructor(description: RecognizerDescription, process: EngineProcess, place = 0) {
    this.description = description;
    this.#process = process;
    this.#place = place;
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  async begin({ language, keywords, isLive }: UtteranceOptions): Promise<void> {
    const terms = keywords.map(({ term, weight }) => ({ term, weight }));
    await this.#call('begin', { place: this.#place, options: { language, keywords: terms, isLive } });
  }

  async write(samples: Int16Array<ArrayBuffer>): Promise<void> {
    for (let start = 0; start < samples.length; start += BLOCK_SAMPLES) {
      const block = samples.subarray(start, start + BLOCK_SAMPLES);
      await this.#call('write', this.#place, new Uint8Array(block.buffer, block.byteOffset, block.byteLength));
    }
  }

  async pause(): Promise<void> {
    await this.#call('pause');
  }

  async hypothesis(): Promise<Hypothesis | null> {
    const answer = await this.#call('hypothesis');
    if (!HypothesisAnswer.matches(answer)) throw this.#breakOff();
    return answer;
  }

  async finish(): Promise<Recognition> {
    const answer = await this.#call('finish');
    if (!RecognitionAnswer.matches(answer)) throw this.#breakOff();
    return answer;
  }

  async cancel(): Promise<void> {
    await this.#call('cancel');
  }

  close(): Promise<void> {
    return this.#process.close();
  }

  beside(): Recognizer {
    return new RecognizerProcess(this.description, this.#process, this.#nextPlace++);
  }

  async #call(name: string, argument: JsonValue = this.#place, body?: Uint8Array): Promise<unknown> {
    try {
      return await this.#process.call(name, argument, body);
    } catch (error) {
      // After an unexpected exception the engine's state is undefined.
      if (isUnexpected(error)) this.#process.breakOff('the engine failed', error);
      throw toRecognizerError(error);
    }
  }

  #breakOff(): RecognizerError {
    return toRecognizerError(this.#process.breakOff('the engine process returned an invalid answer'));
  }
}

/** Whether a retry may help, by the code of an error from the child. */
const ERROR_CODES: Readonly<Record<RecognizerErrorCode, { retryable: boolean }>> = {
  unsupported_language: { retryable: false },
  crashed: { retryable: true },
  model: { retryable: false },
  rate_limited: { retryable: true },
  unavailable: { retryable: true },
  cancelled: { retryable: false },
};

function isUnexpected(error: unknown): boolean {
  return error instanceof EngineCallError && !isKnown(error.code);
}

function isKnown(code: string | null): code is RecognizerErrorCode {
  return code !== null && Object.hasOwn(ERROR_CODES, code);
}

function toRecognizerError(error: unknown): RecognizerError {
  if (error instanceof EngineCallError && isKnown(error.code)) {
    const { retryable } = ERROR_CODES[error.code];
    return new RecognizerError(error.code, error.message, { retryable, cause: error });
  }
  if (error instanceof EngineCallError || error instanceof ProcessError) {
    return new RecognizerError('crashed', error.message, { retryable: true, cause: error });
  }
  throw error;
}
