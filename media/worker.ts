import { type MessagePort, parentPort } from 'node:worker_threads';
import type { RecordingSummary } from './media-plane.ts';
import { FramePacer } from './relay/frame-pacer.ts';
import { SendRing } from './relay/send-ring.ts';
import { PortTakenError, RelaySession, RemoteAddressError, SESSION_TICK_MS } from './relay/session.ts';
import { systemCodeOf, type WorkerFailure } from './worker-messages.ts';
import type { FromWorker, ToWorker, WorkerCall, WorkerCalls } from './worker-protocol.ts';

/** Entry of a media worker thread: owns sockets and sessions, answers the pool. */

/** Sessions take turns in this many groups, so that their ticks do not come in one lump between packets. */
const TICK_GROUPS = 10;

function serve(port: MessagePort): void {
  const worker = new MediaWorker((message) => port.postMessage(message));
  port.on('message', (message: ToWorker) => void worker.answer(message));
  port.postMessage({ type: 'ready' } satisfies FromWorker);
}

class MediaWorker {
  readonly #post: (message: FromWorker) => void;
  readonly #sessions = new Map<number, RelaySession>();
  readonly #pacer = new FramePacer();
  readonly #sendRing = new SendRing();
  #ticker: NodeJS.Timeout | null = null;
  #tickGroup = 0;

  constructor(post: (message: FromWorker) => void) {
    this.#post = post;
  }

  async answer(message: ToWorker): Promise<void> {
    const { requestId } = message;
    try {
      this.#post({ type: 'done', requestId, answer: await this.#perform(message) });
    } catch (error) {
      this.#post({ type: 'failed', requestId, failure: failureOf(error, message.type) });
    }
  }

  async #perform(message: ToWorker): Promise<WorkerCalls[WorkerCall]['answer']> {
    switch (message.type) {
      case 'session.open':
        await this.#open(message);
        return null;
      case 'leg.connect':
        await this.#session(message.sessionKey).connectLeg(message.leg, message.remote);
        return null;
      case 'path.set':
        this.#session(message.sessionKey).setPath(message.path);
        return null;
      case 'leg.play':
        return this.#session(message.sessionKey).play(message.leg, message);
      case 'recording.start':
        await this.#session(message.sessionKey).startRecording(message.filePath);
        return null;
      case 'recording.stop':
        return this.#session(message.sessionKey).stopRecording();
      case 'tap.start':
        this.#session(message.sessionKey).startTap(message.ports);
        return null;
      case 'tap.stop':
        this.#session(message.sessionKey).stopTap();
        return null;
      case 'quality.measure':
        return this.#session(message.sessionKey).quality();
      case 'session.close':
        return this.#close(message.sessionKey);
      case 'worker.ping':
        return null;
      case 'worker.dump':
        return [...this.#sessions].map(([sessionKey, session]) => ({ sessionKey, session: session.dump() }));
      case 'worker.drain':
        await Promise.all([...this.#sessions.keys()].map((sessionKey) => this.#close(sessionKey)));
        return null;
    }
  }

  async #open(request: WorkerCalls['session.open']['request']): Promise<void> {
    const { sessionKey } = request;
    const session = await RelaySession.open({
      bindHost: request.bindHost,
      rtpPorts: request.rtpPorts,
      rtpTimeoutMs: request.rtpTimeoutMs,
      pacer: this.#pacer,
      sendRing: this.#sendRing,
      post: (event) => this.#post({ type: 'event', sessionKey, event }),
    });
    this.#sessions.set(sessionKey, session);
    this.#ticker ??= setInterval(() => this.#tick(), SESSION_TICK_MS / TICK_GROUPS);
  }

  async #close(sessionKey: number): Promise<RecordingSummary | null> {
    const recording = (await this.#sessions.get(sessionKey)?.close()) ?? null;
    this.#sessions.delete(sessionKey);
    if (this.#sessions.size === 0 && this.#ticker !== null) {
      clearInterval(this.#ticker);
      this.#ticker = null;
    }
    return recording;
  }

  #tick(): void {
    this.#tickGroup = (this.#tickGroup + 1) % TICK_GROUPS;
    for (const [sessionKey, session] of this.#sessions) {
      if (sessionKey % TICK_GROUPS === this.#tickGroup) session.tick();
    }
  }

  #session(sessionKey: number): RelaySession {
    const session = this.#sessions.get(sessionKey);
    if (session === undefined) throw new RangeError('the media session is closed');
    return session;
  }
}

function failureOf(error: unknown, call: WorkerCall): WorkerFailure {
  const detail = error instanceof Error ? error.message : String(error);
  if (error instanceof PortTakenError) return { kind: 'port-taken', rtpPort: error.rtpPort, detail };
  if (error instanceof RemoteAddressError) return { kind: 'remote-address', detail };
  if (error instanceof RangeError) return { kind: 'state', detail };
  if (call === 'recording.start') return { kind: 'storage', detail: systemCodeOf(error) };
  return { kind: 'unexpected', detail };
}

// Last, because classes are not hoisted.
if (parentPort !== null) serve(parentPort);
