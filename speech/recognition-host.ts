import { setTimeout as sleep } from 'node:timers/promises';
import { MessageChannel } from 'node:worker_threads';
import { TandemError } from '../machines/errors.ts';
import type { RecognitionEvent } from '../machines/utterances.ts';
import type { EngineSettings } from './engines/available-engines.ts';
import { HostedStream } from './recognition/hosted-stream.ts';
import type { ThreadNotice } from './recognition/protocol.ts';
import { SpeechThread } from './recognition/speech-thread.ts';
import type {
  EngineStatus,
  OpenRecognitionOptions,
  RecognitionLanguage,
  RecognitionStream,
  SpeechRecognition,
} from './speech-recognition.ts';

export interface SpeechRecognitionOptions {
  settings: EngineSettings;
  logger?: SpeechLogger;
  /** Makes the engines instead of `engines/available-engines.ts`, for tests that need some that fail. */
  enginesModule?: URL;
}

/** The part of a pino logger that is used here. */
interface SpeechLogger {
  warn(fields: object, message: string): void;
}

/**
 * Starts the speech thread, which outlives none of its engines: a new one takes its place when it dies.
 * @throws TandemError `INTERNAL` when it cannot be started
 */
export async function createSpeechRecognition(options: SpeechRecognitionOptions): Promise<SpeechRecognition> {
  const host = new RecognitionHost(options);
  await host.started();
  return host;
}

/** A thread that dies young is started again ever later. */
const FIRST_RESTART_DELAY_MS = 50;
const LAST_RESTART_DELAY_MS = 10_000;
const LONG_LIFE_MS = 30_000;
const THREAD_DIED = 'The speech thread died.';

class RecognitionHost implements SpeechRecognition {
  readonly #options: SpeechRecognitionOptions;
  readonly #streams = new Map<number, HostedStream>();
  readonly #closed = new AbortController();
  /** The thread that runs, or the one that is to take the place of one that died. */
  #running: Promise<SpeechThread>;
  #thread: SpeechThread | null = null;
  #startedAtMs = 0;
  #restartDelayMs = FIRST_RESTART_DELAY_MS / 2;
  #languages: readonly RecognitionLanguage[] = [];
  #opened = 0;
  #closing: Promise<void> | null = null;

  constructor(options: SpeechRecognitionOptions) {
    this.#options = options;
    this.#running = this.#start();
  }

  async started(): Promise<void> {
    try {
      await this.#running;
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  async open({ streamId, mode, onEvent, signal, ...settings }: OpenRecognitionOptions): Promise<RecognitionStream> {
    signal.throwIfAborted();
    const thread = await this.#readyThread();
    signal.throwIfAborted();
    const streamKey = this.#opened++;
    const { port1: utterances, port2 } = new MessageChannel();
    const request = { streamKey, mode, settings, utterances: port2 };
    const { model } = await thread.call('stream.open', request, [port2]);
    if (thread !== this.#thread) throw new TandemError('INTERNAL', THREAD_DIED);
    const stream = new HostedStream({
      utterances,
      model,
      signal,
      configure: (change) => thread.call('stream.configure', { streamKey, change }),
      onEvent: (event) => this.#tell(streamId, onEvent, event),
      onClosed: () => {
        this.#streams.delete(streamKey);
        // A stream that ended by itself is closed there already, and so is one of a thread that died.
        thread.call('stream.close', { streamKey }).catch(() => {});
      },
    });
    signal.throwIfAborted();
    this.#streams.set(streamKey, stream);
    return stream;
  }

  languages(): readonly RecognitionLanguage[] {
    return this.#languages;
  }

  async engines(): Promise<readonly EngineStatus[]> {
    const thread = await this.#readyThread();
    const { engines, languages } = await thread.call('engines.describe', {});
    this.#languages = languages;
    return engines;
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    this.#closed.abort();
    for (const stream of this.#streams.values()) stream.close();
    await this.#thread?.close();
  }

  async #readyThread(): Promise<SpeechThread> {
    if (this.#closing !== null) throw new TandemError('SHUTTING_DOWN', 'Speech recognition is shutting down.');
    return await this.#running;
  }

  async #start(): Promise<SpeechThread> {
    const { settings, enginesModule } = this.#options;
    const module = enginesModule ?? new URL('./engines/available-engines.ts', import.meta.url);
    const thread = new SpeechThread({
      data: { settings, enginesModule: module.href },
      onNotice: (notice) => this.#take(notice),
    });
    this.#thread = thread;
    this.#startedAtMs = performance.now();
    void thread.ended.then((detail) => this.#replace(detail));
    const { languages } = await thread.ready;
    this.#languages = languages;
    return thread;
  }

  #replace(detail: string): void {
    if (this.#closing !== null) return;
    const lost = [...this.#streams.values()];
    this.#options.logger?.warn({ detail, streams: lost.length }, 'speech thread lost');
    const isYoung = performance.now() - this.#startedAtMs < LONG_LIFE_MS;
    this.#restartDelayMs = isYoung ? Math.min(this.#restartDelayMs * 2, LAST_RESTART_DELAY_MS) : FIRST_RESTART_DELAY_MS;
    this.#thread = null;
    this.#running = sleep(this.#restartDelayMs, null, { signal: this.#closed.signal }).then(() => this.#start());
    // Whoever waits for it is told; that nobody does is no failure.
    this.#running.catch(() => {});
    for (const stream of lost) {
      stream.deliver({ type: 'recognition.failed', code: 'INTERNAL', message: THREAD_DIED, retryAfterS: null });
    }
  }

  #take(notice: ThreadNotice): void {
    if (notice.type === 'event') this.#streams.get(notice.streamKey)?.deliver(notice.event);
    else this.#options.logger?.warn({ model: notice.model, detail: notice.detail }, 'recognizer broke');
  }

  /** An owner that throws must not take the other streams' events with it. */
  #tell(streamId: string, onEvent: OpenRecognitionOptions['onEvent'], event: RecognitionEvent): void {
    try {
      onEvent(event);
    } catch (error) {
      this.#options.logger?.warn({ err: error, streamId }, 'recognition event listener threw');
    }
  }
}
