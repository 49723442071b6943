import { setTimeout as sleep } from 'node:timers/promises';
import { SynthesizerError } from '../../synthesizer.ts';
import { fetchAtMost } from './bounded-fetch.ts';
import { reasonOf } from './failure-reason.ts';

export interface SpeechServerOptions {
  /** Includes the version, such as `http://gpu:8880/v1`. */
  baseUrl: string;
  /** Null for servers without authentication. */
  apiKey: string | null;
  model: string;
  /** Timeout until the first byte of the audio, and between chunks. Default 30 s. */
  answerWithinMs?: number;
  /** Delay before the first retry. Default 250 ms. */
  retryAfterMs?: number;
}

export interface SpeechRequest {
  text: string;
  voice: string;
  /** 0.25 to 4. */
  speed: number;
}

/** A response whose headers have arrived. */
export interface SpeechAnswer {
  contentType: string | null;
  /** Enforces the timeout between chunks. Ending the iteration closes the connection. */
  chunks: AsyncGenerator<Uint8Array, void>;
}

/** OpenAI's `/audio/speech` as implemented by many servers. Never logs the text. */
export class SpeechServer {
  readonly model: string;
  readonly #options: SpeechServerOptions;
  readonly #baseUrl: string;
  readonly #answerWithinMs: number;
  /** Servers without PCM send WAV. Detected by trying. */
  #format: Format = 'pcm';

  constructor(options: SpeechServerOptions) {
    this.#options = options;
    this.model = options.model;
    this.#baseUrl = options.baseUrl.replace(/\/+$/, '');
    this.#answerWithinMs = options.answerWithinMs ?? 30_000;
  }

  /** Retries a few times until a response starts. @throws SynthesizerError, the signal's reason */
  async speak(request: SpeechRequest, signal: AbortSignal): Promise<SpeechAnswer> {
    for (let attempt = 1; ; attempt++) {
      const answer = await this.#ask(request, signal);
      if ('chunks' in answer) return answer;
      if (answer.isPassing && attempt < MOST_ATTEMPTS && answer.afterMs <= LONGEST_WAIT_MS) {
        const usualMs = (this.#options.retryAfterMs ?? 250) * 2 ** (attempt - 1) * (0.5 + Math.random());
        await sleep(Math.max(answer.afterMs, usualMs), undefined, { signal }).catch(() => signal.throwIfAborted());
        continue;
      }
      throw answer.refusal;
    }
  }

  /** GETs a path; null if the response is missing or not JSON. Bounded in time and size. */
  async get(path: string): Promise<{ isSure: boolean; value: unknown }> {
    try {
      const signal = AbortSignal.timeout(Math.min(LIST_WITHIN_MS, this.#answerWithinMs));
      const url = `${this.#baseUrl}${path}`;
      const response = await fetchAtMost(MOST_LIST_BYTES)(url, { headers: this.#headers(), signal });
      if (!response.ok) return { isSure: response.status < 500 && response.status !== 429, value: null };
      return { isSure: true, value: await response.json().catch(() => null) };
    } catch {
      return { isSure: false, value: null };
    }
  }

  async #ask(
    request: SpeechRequest,
    signal: AbortSignal,
    format: Format = this.#format,
  ): Promise<SpeechAnswer | Refused> {
    const asked = new AskedInTime(signal, this.#answerWithinMs);
    let response: Response;
    try {
      response = await asked.within(this.#post(request, format, asked.signal));
      if (response.ok) {
        return { contentType: response.headers.get('content-type'), chunks: chunksOf(response, asked) };
      }
      const refusal = await this.#refusalOf(response, asked);
      const isOtherFormat = response.status === 400 || response.status === 415 || response.status === 422;
      if (format === 'pcm' && isOtherFormat) return await this.#askForWav(request, signal, refusal);
      const isPassing = response.status === 408 || response.status === 429 || response.status >= 500;
      return { refusal, isPassing, afterMs: retryAfterMs(response.headers) };
    } catch (error) {
      signal.throwIfAborted();
      const refusal = error instanceof TooLate ? error : unreachable(error);
      return { refusal, isPassing: !(error instanceof TooLate), afterMs: 0 };
    }
  }

  async #askForWav(request: SpeechRequest, signal: AbortSignal, refusal: SynthesizerError) {
    const answer = await this.#ask(request, signal, 'wav');
    if ('chunks' in answer) {
      this.#format = 'wav';
      return answer;
    }
    // The format was not the reason.
    return { refusal, isPassing: false, afterMs: 0 };
  }

  #post({ text, voice, speed }: SpeechRequest, format: Format, signal: AbortSignal): Promise<Response> {
    const output = { model: this.model, voice, response_format: format };
    return fetch(`${this.#baseUrl}/audio/speech`, {
      method: 'POST',
      headers: { ...this.#headers(), 'content-type': 'application/json' },
      body: JSON.stringify({ ...output, input: text, ...(speed !== 1 && { speed }) }),
      // A redirect would leak key and text.
      redirect: 'error',
      signal,
    });
  }

  #headers(): Record<string, string> {
    const { apiKey } = this.#options;
    return apiKey === null ? {} : { authorization: `Bearer ${apiKey}` };
  }

  /** For the operator. Omits the server's text, which may repeat the request's. */
  async #refusalOf(response: Response, asked: AskedInTime): Promise<SynthesizerError> {
    const code = await codeOf(response, asked);
    const status = code === null ? `${response.status}` : `${response.status} ${code}`;
    switch (response.status) {
      case 401:
      case 403:
        return new SynthesizerError(
          'unavailable',
          `the speech server does not take our key (${status}): set TTS_API_KEY`,
        );
      case 404:
      case 405: {
        const message = `the speech server has no /audio/speech there, or no model ${this.model} (${status})`;
        return new SynthesizerError('model', `${message}: check TTS_BASE_URL and TTS_MODEL`);
      }
      case 429:
        return new SynthesizerError('unavailable', `the speech server limits us (${status})`);
      default: {
        const does = response.status >= 500 || response.status === 408 ? 'failed' : 'refuses what it is asked';
        return new SynthesizerError('unavailable', `the speech server ${does} (${status})`);
      }
    }
  }
}

type Format = 'pcm' | 'wav';

interface Refused {
  refusal: SynthesizerError;
  /** Whether a retry may succeed. */
  isPassing: boolean;
  /** Delay that the server requests. */
  afterMs: number;
}

const MOST_ATTEMPTS = 3;
/** Longest delay of a retry, because a listener waits. */
const LONGEST_WAIT_MS = 2000;
const LIST_WITHIN_MS = 5000;
const MOST_LIST_BYTES = 1_000_000;
const MOST_REFUSAL_BYTES = 16_384;

class TooLate extends SynthesizerError {
  constructor() {
    super('unavailable', 'the speech server did not answer in time');
  }
}

/** A request that ends when its owner aborts, or when the server exceeds a timeout that only runs while we wait. */
class AskedInTime {
  readonly signal: AbortSignal;
  readonly #abort = new AbortController();
  readonly #withinMs: number;

  constructor(signal: AbortSignal, withinMs: number) {
    this.signal = AbortSignal.any([signal, this.#abort.signal]);
    this.#withinMs = withinMs;
  }

  /** @throws TooLate */
  async within<T>(promise: Promise<T>): Promise<T> {
    const timer = setTimeout(() => this.#abort.abort(new TooLate()), this.#withinMs);
    try {
      return await promise;
    } catch (error) {
      if (this.#abort.signal.aborted) throw this.#abort.signal.reason;
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /** Closes the connection. */
  end(): void {
    this.#abort.abort();
  }
}

/** @throws SynthesizerError if the connection breaks */
async function* chunksOf({ body }: Response, asked: AskedInTime): AsyncGenerator<Uint8Array, void> {
  const reader = body?.getReader();
  try {
    while (reader !== undefined) {
      const next = await asked.within(reader.read()).catch((error: unknown) => {
        throw error instanceof SynthesizerError ? error : brokenOff(error);
      });
      if (next.done) return;
      yield next.value;
    }
  } finally {
    asked.end();
  }
}

/** Such as `model_not_found`: only what looks like an error name. */
async function codeOf({ body }: Response, asked: AskedInTime): Promise<string | null> {
  try {
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of chunksOf(new Response(body), asked)) {
      bytes += chunk.byteLength;
      if (bytes > MOST_REFUSAL_BYTES) return null;
      chunks.push(chunk);
    }
    const { error } = JSON.parse(Buffer.concat(chunks).toString('utf8')) as {
      error?: { code?: unknown; type?: unknown };
    };
    const named = [error?.code, error?.type].find((value) => typeof value === 'string' && ERROR_NAME.test(value));
    return (named as string | undefined) ?? null;
  } catch {
    return null;
  }
}

const ERROR_NAME = /^[a-z]{2,20}(?:_[a-z]{1,20}){1,4}$/;

function unreachable(error: unknown): SynthesizerError {
  return new SynthesizerError('unavailable', `the speech server cannot be reached: ${reasonOf(error).slice(0, 100)}`);
}

function brokenOff(error: unknown): SynthesizerError {
  return new SynthesizerError('unavailable', `the speech server broke off: ${reasonOf(error).slice(0, 100)}`);
}

/** RFC 9110, section 10.2.3. */
function retryAfterMs(headers: Headers): number {
  const header = headers.get('retry-after');
  if (header === null) return 0;
  if (/^\s*\d+(\.\d+)?\s*$/.test(header)) return Number(header) * 1000;
  const at = Date.parse(header);
  return Number.isNaN(at) ? 0 : Math.max(0, at - Date.now());
}
