import { type MessagePort, parentPort } from 'node:worker_threads';
import type { FileHeard, StreamHeard } from '../listening-plane.ts';
import { systemCodeOf, type WorkerFailure } from '../worker-messages.ts';
import { FileListener } from './file-listener.ts';
import { LiveListener } from './live-listener.ts';
import { NoiseSuppressors } from './noise-suppressor.ts';
import { SileroNetworks } from './silero-network.ts';
import type {
  FromListeningWorker,
  ListeningCalls,
  ListeningDump,
  ListeningNotice,
  ToListeningWorker,
} from './worker-protocol.ts';

/** Entry of a listening worker thread: owns the streams and files that are heard, answers the pool. */

function serve(port: MessagePort, networks: SileroNetworks, suppressors: NoiseSuppressors): void {
  const worker = new ListeningWorker((message) => port.postMessage(message), networks, suppressors);
  port.on('message', (message: ToListeningWorker) => worker.take(message));
  port.postMessage({ type: 'ready' } satisfies FromListeningWorker);
}

type Request = Exclude<ToListeningWorker, ListeningNotice>;

class ListeningWorker {
  readonly #post: (message: FromListeningWorker) => void;
  readonly #networks: SileroNetworks;
  readonly #suppressors: NoiseSuppressors;
  readonly #streams = new Map<number, LiveListener>();
  readonly #files = new Map<number, FileListener>();

  constructor(post: (message: FromListeningWorker) => void, networks: SileroNetworks, suppressors: NoiseSuppressors) {
    this.#post = post;
    this.#suppressors = suppressors;
    this.#networks = networks;
  }

  take(message: ToListeningWorker): void {
    if (message.type === 'session.write' || message.type === 'session.configure') this.#notice(message);
    else void this.#answer(message);
  }

  #notice(message: ListeningNotice): void {
    // A notice to a session that has just been closed is late, not wrong.
    const listener = this.#streams.get(message.sessionKey);
    try {
      if (message.type === 'session.write') listener?.write(message.bytes);
      else listener?.configure(message.change);
    } catch (error) {
      this.#lose(message.sessionKey, error);
    }
  }

  /** What breaks one session must not take the others of this thread with it. */
  #lose(sessionKey: number, error: unknown): void {
    this.#close(sessionKey);
    this.#post({ type: 'event', sessionKey, event: { type: 'listening.lost', detail: failureOf(error).detail } });
  }

  async #answer(message: Request): Promise<void> {
    const { requestId } = message;
    try {
      this.#post({ type: 'done', requestId, answer: await this.#perform(message) });
    } catch (error) {
      this.#post({ type: 'failed', requestId, failure: failureOf(error) });
    }
  }

  #perform(
    message: Request,
  ): ListeningCalls[keyof ListeningCalls]['answer'] | Promise<ListeningCalls[keyof ListeningCalls]['answer']> {
    switch (message.type) {
      case 'session.open':
        this.#open(message);
        return null;
      case 'session.finish':
        return this.#finish(message.sessionKey);
      case 'session.close':
        this.#close(message.sessionKey);
        return null;
      case 'file.listen':
        return this.#listenToFile(message);
      case 'worker.ping':
        return null;
      case 'worker.dump':
        return this.#dump();
      case 'worker.drain':
        for (const sessionKey of [...this.#streams.keys(), ...this.#files.keys()]) this.#close(sessionKey);
        return null;
    }
  }

  #open({ sessionKey, settings, utterances, inlet }: ListeningCalls['session.open']['request']): void {
    const listener = new LiveListener({
      settings,
      utterances,
      inlet,
      network: this.#networks.create(),
      suppressors: this.#suppressors,
      onEvent: (event) => this.#post({ type: 'event', sessionKey, event }),
      onBroken: (error) => this.#lose(sessionKey, error),
    });
    this.#streams.set(sessionKey, listener);
  }

  #finish(sessionKey: number): StreamHeard {
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
  }

  async #listenToFile(request: ListeningCalls['file.listen']['request']): Promise<FileHeard> {
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

  #dump(): ListeningDump {
    const listeners = [...this.#files, ...this.#streams];
    return {
      voiceNetworkProblem: this.#networks.problem,
      noiseSuppressionProblem: this.#suppressors.problem,
      sessions: listeners.map(([sessionKey, listener]) => ({ sessionKey, session: listener.dump() })),
    };
  }
}

function failureOf(error: unknown): WorkerFailure {
  if (error instanceof RangeError) return { kind: 'state', detail: error.message };
  if (error instanceof Error && 'syscall' in error) return { kind: 'storage', detail: systemCodeOf(error) };
  return { kind: 'unexpected', detail: error instanceof Error ? error.message : String(error) };
}

// Last, because classes are not hoisted. What is posted before the models are loaded waits.
if (parentPort !== null) {
  const [networks, suppressors] = await Promise.all([SileroNetworks.load(), NoiseSuppressors.load()]);
  serve(parentPort, networks, suppressors);
}
