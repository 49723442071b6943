import { type ServedThread, serveThread } from '../../runtime/serve-thread.ts';
import type { ThreadFailure } from '../../runtime/thread-protocol.ts';
import type { FileAnalysis, StreamAnalysis } from '../listening-plane.ts';
import { storageFailure } from '../worker-protocol.ts';
import { FileListener } from './file-listener.ts';
import { LiveListener } from './live-listener.ts';
import { NoiseSuppressors } from './noise-suppressor.ts';
import { SileroNetworks } from './silero-network.ts';
import type {
  ListeningCalls,
  ListeningDump,
  ListeningNotice,
  ListeningReport,
  ListeningThread,
} from './worker-protocol.ts';

/** Entry of a listening worker thread, which owns streams and files. */

/** Interval at which a worker reads from taps. */
const LISTEN_EVERY_MS = 40;

class ListeningWorker {
  readonly #report: (sessionKey: number, event: ListeningReport) => void;
  readonly #networks: SileroNetworks;
  readonly #suppressors: NoiseSuppressors;
  readonly #streams = new Map<number, LiveListener>();
  readonly #files = new Map<number, FileListener>();
  #poller: NodeJS.Timeout | null = null;

  constructor(
    report: (sessionKey: number, event: ListeningReport) => void,
    networks: SileroNetworks,
    suppressors: NoiseSuppressors,
  ) {
    this.#report = report;
    this.#suppressors = suppressors;
    this.#networks = networks;
  }

  readonly calls: ServedThread<ListeningThread>['calls'] = {
    'session.open': (request) => this.#open(request),
    'session.finish': ({ sessionKey }) => this.#finish(sessionKey),
    'session.close': ({ sessionKey }) => this.#close(sessionKey),
    'file.listen': (request) => this.#listenToFile(request),
  };

  notice(message: ListeningNotice): void {
    // A notice to a session that has just been closed is late, not an error.
    const listener = this.#streams.get(message.sessionKey);
    try {
      if (message.type === 'session.write') listener?.write(message.bytes);
      else if (message.type === 'session.configure') listener?.configure(message.change);
      else listener?.endUtterance();
    } catch (error) {
      this.#lose(message.sessionKey, error);
    }
  }

  drain(): void {
    for (const sessionKey of [...this.#streams.keys(), ...this.#files.keys()]) this.#close(sessionKey);
  }

  dump(): ListeningDump {
    const listeners = [...this.#files, ...this.#streams];
    return {
      voiceNetworkProblem: this.#networks.problem,
      noiseSuppressionProblem: this.#suppressors.problem,
      sessions: listeners.map(([sessionKey, listener]) => ({ sessionKey, session: listener.dump() })),
    };
  }

  /** A failing session must not affect the others of this thread. */
  #lose(sessionKey: number, error: unknown): void {
    this.#close(sessionKey);
    this.#report(sessionKey, { type: 'listening.lost', detail: failureOf(error).message });
  }

  #open({ sessionKey, settings, utterances, inlet }: ListeningCalls['session.open']['request']): void {
    const listener = new LiveListener({
      settings,
      utterances,
      inlet,
      network: this.#networks.create(),
      suppressors: this.#suppressors,
      onEvent: (event) => this.#report(sessionKey, event),
      onBroken: (error) => this.#lose(sessionKey, error),
    });
    this.#streams.set(sessionKey, listener);
    if (inlet === null) return;
    this.#poller ??= setInterval(() => {
      for (const each of this.#streams.values()) each.listen();
    }, LISTEN_EVERY_MS);
  }

  #finish(sessionKey: number): StreamAnalysis {
    const listener = this.#streams.get(sessionKey);
    if (listener === undefined) throw new RangeError('the listening session is closed');
    try {
      return listener.finish();
    } finally {
      this.#close(sessionKey);
    }
  }

  #close(sessionKey: number): void {
    this.#files.get(sessionKey)?.close();
    this.#streams.get(sessionKey)?.close();
    this.#streams.delete(sessionKey);
    if (this.#streams.size > 0 || this.#poller === null) return;
    clearInterval(this.#poller);
    this.#poller = null;
  }

  async #listenToFile(request: ListeningCalls['file.listen']['request']): Promise<FileAnalysis> {
    const isSeparate = request.channels === 'separate' && request.source.format.channels === 2;
    const networks = Array.from({ length: isSeparate ? 2 : 1 }, () => this.#networks.create());
    const listener = new FileListener(request, networks, this.#suppressors);
    this.#files.set(request.sessionKey, listener);
    try {
      return await listener.listen();
    } finally {
      this.#files.delete(request.sessionKey);
    }
  }
}

function failureOf(error: unknown): ThreadFailure {
  if (error instanceof Error && !(error instanceof RangeError) && 'syscall' in error) return storageFailure(error);
  return { code: null, message: error instanceof Error ? error.message : String(error) };
}

// Must be last, because classes are not hoisted. Calls made before the models are loaded wait.
await serveThread<ListeningThread>(async ({ report }) => {
  const [networks, suppressors] = await Promise.all([SileroNetworks.load(), NoiseSuppressors.load()]);
  const worker = new ListeningWorker((sessionKey, event) => report({ sessionKey, event }), networks, suppressors);
  return {
    ready: null,
    calls: worker.calls,
    notice: (message) => worker.notice(message),
    dump: () => worker.dump(),
    drain: () => worker.drain(),
    failureOf,
  };
});
