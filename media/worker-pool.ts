import { isIP } from 'node:net';
import { TandemError } from '../machines/errors.ts';
import type { LegName, MediaEvent } from '../machines/events.ts';
import type { MediaPlane, MediaSession, OpenSessionOptions } from './media-plane.ts';
import { PooledSession, toTandemError } from './pooled-session.ts';
import { PortPairs } from './port-pairs.ts';
import type { WorkerCalls } from './worker-protocol.ts';
import { leastLoaded, WorkerSlot } from './worker-slot.ts';
import { WorkerCallError } from './worker-thread.ts';

export interface MediaPlaneOptions {
  /** Threads; 1 or more. */
  workers: number;
  /** Literal address that RTP sockets are bound to. */
  rtpHost: string;
  /** What SDP offers say instead, e.g. a public address behind 1:1 NAT. Needed when `rtpHost` is 0.0.0.0 or ::. */
  advertisedHost?: string;
  /** Inclusive. A session takes four ports. */
  rtpPortMin: number;
  rtpPortMax: number;
  logger?: MediaLogger;
  /** Another entry for the threads, for tests that need one that fails. Default `worker.ts`. */
  workerFile?: URL;
}

/** The part of a pino logger that is used here. */
interface MediaLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** Starts the worker threads. @throws RangeError for a bad port range, address or number of workers. */
export function createMediaPlane(options: MediaPlaneOptions): MediaPlane {
  if (!Number.isInteger(options.workers) || options.workers < 1) throw new RangeError('at least one media worker');
  if (isIP(options.rtpHost) === 0) throw new RangeError('the RTP host must be a literal IP address');
  const isUnspecified = options.rtpHost === '0.0.0.0' || options.rtpHost === '::';
  if (isUnspecified && options.advertisedHost === undefined) {
    throw new RangeError('an RTP host of all addresses needs an advertised host, which peers can send to');
  }
  return new WorkerPool(options);
}

const DEFAULT_RTP_TIMEOUT_MS = 20_000;
const MOST_LOST_WORKERS_PER_OPEN = 3;

type MediaSlot = WorkerSlot<WorkerCalls, MediaEvent, PooledSession>;

class WorkerPool implements MediaPlane {
  readonly #options: MediaPlaneOptions;
  readonly #ports: PortPairs;
  readonly #slots: MediaSlot[];
  readonly #sessions = new Map<number, PooledSession>();
  #nextSessionKey = 1;
  #closing: Promise<void> | null = null;

  constructor(options: MediaPlaneOptions) {
    this.#options = options;
    this.#ports = new PortPairs({ min: options.rtpPortMin, max: options.rtpPortMax });
    this.#slots = Array.from({ length: options.workers }, () => this.#newSlot());
  }

  async openSession(options: OpenSessionOptions): Promise<MediaSession> {
    options.signal.throwIfAborted();
    let refusals = 0;
    let losses = 0;
    for (;;) {
      if (this.#closing !== null) throw new TandemError('SHUTTING_DOWN', 'The media plane is shutting down.');
      const slot = leastLoaded(this.#slots);
      if (slot === null) throw noFreeChannel();
      const rtpPorts = this.#takePorts();
      try {
        const session = await this.#openOn(slot, rtpPorts, options);
        if (!options.signal.aborted) return session;
        await session.close();
        break;
      } catch (error) {
        this.#ports.giveBack(rtpPorts.agent);
        this.#ports.giveBack(rtpPorts.customer);
        if (!(error instanceof WorkerCallError)) throw error;
        const { kind } = error.failure;
        if (kind === 'port-taken' && ++refusals <= this.#ports.size) continue;
        if (kind === 'worker-lost' && ++losses < MOST_LOST_WORKERS_PER_OPEN) continue;
        if (kind === 'port-taken' || kind === 'worker-lost') throw noFreeChannel();
        throw toTandemError(error);
      }
    }
    throw options.signal.reason;
  }

  capacity(): { sessions: number; maxSessions: number; workers: number } {
    return {
      sessions: this.#sessions.size,
      maxSessions: Math.floor(this.#ports.size / 2),
      workers: this.#slots.filter((slot) => slot.isAlive).length,
    };
  }

  async dump(): Promise<unknown> {
    const workers = await Promise.all(this.#slots.map((slot) => this.#dumpSlot(slot)));
    const { sessions, maxSessions } = this.capacity();
    return { sessions, maxSessions, freePortPairs: this.#ports.freeCount, workers };
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #openOn(
    slot: MediaSlot,
    rtpPorts: Record<LegName, number>,
    options: OpenSessionOptions,
  ): Promise<MediaSession> {
    const { thread } = slot;
    if (thread === null) throw new WorkerCallError({ kind: 'worker-lost', detail: 'the media worker is restarting' });
    const sessionKey = this.#nextSessionKey++;
    slot.opening += 1;
    try {
      await thread.call('session.open', {
        sessionKey,
        bindHost: this.#options.rtpHost,
        rtpPorts,
        rtpTimeoutMs: options.rtpTimeoutMs ?? DEFAULT_RTP_TIMEOUT_MS,
      });
    } finally {
      slot.opening -= 1;
    }
    const host = this.#options.advertisedHost ?? this.#options.rtpHost;
    const session: PooledSession = new PooledSession({
      sessionId: options.sessionId,
      sessionKey,
      thread,
      local: { agent: { host, rtpPort: rtpPorts.agent }, customer: { host, rtpPort: rtpPorts.customer } },
      signal: options.signal,
      onEvent: (event) => this.#tell(options, event),
      onClosed: () => {
        this.#sessions.delete(sessionKey);
        slot.sessions.delete(session);
        this.#ports.giveBack(rtpPorts.agent);
        this.#ports.giveBack(rtpPorts.customer);
      },
    });
    this.#sessions.set(sessionKey, session);
    slot.sessions.add(session);
    return session;
  }

  #takePorts(): Record<LegName, number> {
    const agent = this.#ports.take();
    const customer = this.#ports.take();
    if (agent !== null && customer !== null) return { agent, customer };
    if (agent !== null) this.#ports.giveBack(agent);
    throw noFreeChannel();
  }

  #newSlot(): MediaSlot {
    return new WorkerSlot({
      file: this.#options.workerFile ?? new URL('./worker.ts', import.meta.url),
      name: 'media worker',
      onEvent: (sessionKey, event) => this.#sessions.get(sessionKey)?.deliver(event),
      onLost: (detail, sessions) => this.#options.logger?.warn({ detail, sessions }, 'media worker lost'),
    });
  }

  /** An owner that throws must not take the other sessions' events with it. */
  #tell(options: OpenSessionOptions, event: MediaEvent): void {
    try {
      options.onEvent(event);
    } catch (error) {
      this.#options.logger?.warn({ err: error, sessionId: options.sessionId }, 'media event listener threw');
    }
  }

  async #dumpSlot(slot: MediaSlot): Promise<unknown> {
    const { thread, restarts } = slot;
    if (thread === null) return { state: 'restarting', restarts, sessions: [] };
    try {
      const sessions = await thread.call('worker.dump', {});
      return {
        state: 'running',
        threadId: thread.threadId,
        restarts,
        sessions: sessions.map(({ sessionKey, session }) => ({
          sessionId: this.#sessions.get(sessionKey)?.sessionId ?? null,
          ...(session as object),
        })),
      };
    } catch (error) {
      return { state: 'lost', restarts, detail: error instanceof Error ? error.message : String(error), sessions: [] };
    }
  }

  async #close(): Promise<void> {
    await Promise.all(this.#slots.map((slot) => slot.close()));
  }
}

function noFreeChannel(): TandemError {
  return new TandemError('no_free_channel', 'All media ports are in use. Try again when a call has ended.', {
    retryAfterS: 5,
  });
}
