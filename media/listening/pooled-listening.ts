import { TandemError } from '../../machines/errors.ts';
import type { ListeningEvent } from '../../machines/utterances.ts';
import { type SupervisedThread, ThreadError } from '../../runtime/supervised-thread.ts';
import type { FileAnalysis, ListeningSession, ListeningSettings, StreamAnalysis } from '../listening-plane.ts';
import type { ThreadSession } from '../session-threads.ts';
import { STORAGE_FAILED } from '../worker-protocol.ts';
import type { ListeningCalls, ListeningReport, ListeningThread } from './worker-protocol.ts';

interface PooledListeningOptions {
  sessionId: string;
  sessionKey: number;
  thread: SupervisedThread<ListeningThread>;
  signal: AbortSignal;
  onEvent: (event: ListeningEvent) => void;
  onAnalysed: ((analysedMs: number) => void) | undefined;
  onClosed: () => void;
}

/** The owner's end of a live session. */
export class PooledListening implements ListeningSession, ThreadSession<ListeningReport> {
  readonly sessionId: string;
  readonly #options: PooledListeningOptions;
  #state: 'open' | 'finishing' | 'closed' = 'open';
  #closing: Promise<void> | null = null;

  constructor(options: PooledListeningOptions) {
    this.sessionId = options.sessionId;
    this.#options = options;
    options.signal.addEventListener('abort', this.#onAbort, { once: true });
  }

  write(bytes: Uint8Array<ArrayBuffer>): void {
    if (this.#state !== 'open' || bytes.length === 0) return;
    // A part of a larger buffer cannot be transferred alone.
    const own = bytes.length === bytes.buffer.byteLength ? bytes : new Uint8Array(bytes);
    const { sessionKey, thread } = this.#options;
    thread.post({ type: 'session.write', sessionKey, bytes: own }, [own.buffer]);
  }

  configure(change: Partial<ListeningSettings>): void {
    if (this.#state !== 'open') return;
    const { sessionKey, thread } = this.#options;
    thread.post({ type: 'session.configure', sessionKey, change }, []);
  }

  endUtterance(): void {
    if (this.#state !== 'open') return;
    const { sessionKey, thread } = this.#options;
    thread.post({ type: 'session.end-utterance', sessionKey }, []);
  }

  async finish(): Promise<StreamAnalysis> {
    if (this.#state !== 'open') throw new TandemError('INTERNAL', 'The listening session is closed.');
    this.#state = 'finishing';
    const { sessionKey, thread, signal } = this.#options;
    try {
      return await thread.call('session.finish', { sessionKey });
    } catch (error) {
      throw signal.aborted ? signal.reason : toTandemError(error);
    } finally {
      this.abandon();
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  deliver(report: ListeningReport): void {
    if (report.type === 'listening.lost') this.lose(report.detail);
    else if (this.#state === 'closed') return;
    else if (report.type === 'audio.analysed') this.#options.onAnalysed?.(report.analysedMs);
    else this.#options.onEvent(report);
  }

  lose(detail: string): void {
    const wasOpen = this.#state === 'open';
    this.abandon();
    if (wasOpen) this.#options.onEvent({ type: 'listening.lost', detail });
  }

  /** The worker no longer has the session, or never had it. */
  abandon(): void {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    this.#options.signal.removeEventListener('abort', this.#onAbort);
    this.#options.onClosed();
  }

  readonly #onAbort = (): void => {
    void this.close();
  };

  async #close(): Promise<void> {
    if (this.#state === 'closed') return;
    const { sessionKey, thread } = this.#options;
    const closed = thread.call('session.close', { sessionKey });
    this.abandon();
    // A dead worker has closed it too.
    await closed.catch(() => {});
  }
}

interface FileSessionOptions {
  sessionKey: number;
  thread: SupervisedThread<ListeningThread>;
  signal: AbortSignal;
}

/** The owner's end of a file analysis. */
export class FileSession implements ThreadSession<ListeningReport> {
  readonly sessionId = null;
  readonly #options: FileSessionOptions;

  constructor(options: FileSessionOptions) {
    this.#options = options;
  }

  async listen(request: Omit<ListeningCalls['file.listen']['request'], 'sessionKey'>): Promise<FileAnalysis> {
    const { sessionKey, thread, signal } = this.#options;
    const onAbort = (): void => void this.close();
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      return await thread.call('file.listen', { ...request, sessionKey }, [request.utterances]);
    } catch (error) {
      throw signal.aborted ? signal.reason : toTandemError(error);
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  /** Files report only their end. */
  deliver(): void {}

  /** The thread rejects the open request. */
  lose(): void {}

  async close(): Promise<void> {
    const { sessionKey, thread } = this.#options;
    await thread.call('session.close', { sessionKey }).catch(() => {});
  }
}

export function toTandemError(error: unknown): unknown {
  if (!(error instanceof ThreadError)) return error;
  const message = error.code === STORAGE_FAILED ? `The audio cannot be read: ${error.message}` : error.message;
  return new TandemError('INTERNAL', message, { cause: error });
}
