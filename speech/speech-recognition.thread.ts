import { MessageChannel } from 'node:worker_threads';
import { ERROR_CATALOGUE, type ErrorCode, TandemError } from '../machines/errors.ts';
import type { RecognitionEvent } from '../machines/utterances.ts';
import { StandingThread } from '../runtime/standing-thread.ts';
import { THREAD_CLOSED, THREAD_LOST, type ThreadError } from '../runtime/supervised-thread.ts';
import type { EngineSettings } from './engines/available-engines.ts';
import { HostedStream } from './recognition/hosted-stream.ts';
import { FEWEST_STREAMS, type LiveLoadReading } from './recognition/live-load.ts';
import type { RecognitionThread, ThreadReport } from './recognition/protocol.ts';
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
  /** Replaces `engines/available-engines.ts`, for tests with failing engines. */
  enginesModule?: URL;
}

/** The part of a pino logger that is used here. */
interface SpeechLogger {
  warn(fields: object, message: string): void;
}

/**
 * Starts the speech thread. It is restarted when it dies, and its engines die with it.
 * @throws TandemError `INTERNAL` if it cannot be started
 */
export async function createSpeechRecognition(options: SpeechRecognitionOptions): Promise<SpeechRecognition> {
  const host = new RecognitionHost(options);
  await host.started();
  return host;
}

const THREAD_DIED = 'The speech thread died.';

class RecognitionHost implements SpeechRecognition {
  readonly #logger: SpeechLogger | undefined;
  readonly #streams = new Map<number, HostedStream>();
  readonly #thread: StandingThread<RecognitionThread>;
  #languages: readonly RecognitionLanguage[] = [];
  #opened = 0;
  #load: LiveLoadReading = { streams: 0, load: 0, perStream: 0 };

  constructor({ settings, enginesModule, logger }: SpeechRecognitionOptions) {
    const module = enginesModule ?? new URL('./engines/available-engines.ts', import.meta.url);
    this.#logger = logger;
    this.#thread = new StandingThread({
      entry: new URL('./recognition/worker.ts', import.meta.url),
      data: { settings, enginesModule: module.href },
      name: 'the speech thread',
      onReady: ({ languages }) => {
        this.#languages = languages;
      },
      onReport: (report) => this.#take(report),
      onLost: (detail) => this.#failAll(detail),
      toError,
    });
  }

  get isRunning(): boolean {
    return this.#thread.current !== null;
  }

  async started(): Promise<void> {
    try {
      await this.#thread.get();
    } catch (error) {
      await this.close();
      throw error;
    }
  }

  async open({
    streamId,
    mode,
    isPromised = false,
    onEvent,
    signal,
    ...settings
  }: OpenRecognitionOptions): Promise<RecognitionStream> {
    signal.throwIfAborted();
    const thread = await this.#thread.get();
    signal.throwIfAborted();
    const streamKey = this.#opened++;
    const { port1: utterances, port2 } = new MessageChannel();
    const request = { streamKey, mode, isPromised, settings, utterances: port2 };
    const model = await thread.call('stream.open', request, [port2]);
    if (!thread.isAlive) throw new TandemError('INTERNAL', THREAD_DIED);
    const stream = new HostedStream({
      utterances,
      model,
      signal,
      configure: (change) => thread.call('stream.configure', { streamKey, change }),
      onEvent: (event) => this.#emit(streamId, onEvent, event),
      onClosed: () => {
        this.#streams.delete(streamKey);
        // Fails if the stream ended by itself or its thread died, and is then already closed.
        thread.call('stream.close', { streamKey }).catch(() => {});
      },
    });
    signal.throwIfAborted();
    this.#streams.set(streamKey, stream);
    return stream;
  }

  liveLoad(more: number): number {
    const { streams, load, perStream } = this.#load;
    return streams + more <= FEWEST_STREAMS ? 0 : load + more * perStream;
  }

  languages(): readonly RecognitionLanguage[] {
    return this.#languages;
  }

  async engines(): Promise<readonly EngineStatus[]> {
    const thread = await this.#thread.get();
    const { engines, languages } = await thread.call('engines.describe', {});
    this.#languages = languages;
    return engines;
  }

  async close(): Promise<void> {
    // No stream can be opened from now on.
    const closed = this.#thread.close();
    for (const stream of this.#streams.values()) stream.close();
    await closed;
  }

  #failAll(detail: string): void {
    const lost = [...this.#streams.values()];
    this.#load = { streams: 0, load: 0, perStream: 0 };
    this.#logger?.warn({ detail, streams: lost.length }, 'speech thread lost');
    for (const stream of lost) {
      stream.deliver({ type: 'recognition.failed', code: 'INTERNAL', message: THREAD_DIED, retryAfterS: null });
    }
  }

  #take(report: ThreadReport): void {
    if (report.type === 'event') this.#streams.get(report.streamKey)?.deliver(report.event);
    else if (report.type === 'load') this.#load = report;
    else this.#logger?.warn({ model: report.model, detail: report.detail }, 'recognizer failed');
  }

  /** Isolates other streams from an owner that throws. */
  #emit(streamId: string, onEvent: OpenRecognitionOptions['onEvent'], event: RecognitionEvent): void {
    try {
      onEvent(event);
    } catch (error) {
      this.#logger?.warn({ err: error, streamId }, 'recognition event listener threw');
    }
  }
}

function toError({ code, message }: ThreadError): TandemError {
  if (code === THREAD_CLOSED) return new TandemError('SHUTTING_DOWN', 'Speech recognition is shutting down.');
  if (code === THREAD_LOST) return new TandemError('INTERNAL', `Speech recognition failed: ${message}.`);
  return new TandemError(
    code !== null && Object.hasOwn(ERROR_CATALOGUE, code) ? (code as ErrorCode) : 'INTERNAL',
    message,
  );
}
