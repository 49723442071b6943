import { isIP } from 'node:net';
import { TandemError } from '../machines/errors.ts';
import { THREAD_LOST, ThreadError } from '../runtime/supervised-thread.ts';
import { type DatagramIo, datagramsMemory } from './datagrams/open-datagrams.ts';
import type {
  LocalAddress,
  MediaCapacity,
  MediaPlane,
  MediaSession,
  OpenSessionOptions,
  PartyId,
} from './media-plane.ts';
import { PooledSession, type SessionPorts, toTandemError } from './pooled-session.ts';
import { PortPairs } from './port-pairs.ts';
import { type Place, SessionThreads } from './session-threads.ts';
import { FULL, loadOf, monotonicMs, WorkerLoad } from './worker-load.ts';
import { type MediaThread, PORT_TAKEN } from './worker-protocol.ts';

export interface MediaPlaneOptions {
  /** Number of threads, at least 1. */
  workers: number;
  /** IP address that RTP sockets bind to. */
  rtpHost: string;
  /** Address for SDP offers, such as a public address behind 1:1 NAT. Required if `rtpHost` is 0.0.0.0 or ::. */
  advertisedHost?: string;
  /** Inclusive. Each party of a session takes two ports. */
  rtpPortMin: number;
  rtpPortMax: number;
  /** Default `auto`. */
  rtpIo?: DatagramIo;
  logger?: MediaLogger;
  /** Thread entry, replaced in tests that need a failing one. Default `worker.ts`. */
  workerFile?: URL;
}

/** Subset of a pino logger. */
interface MediaLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/** Starts the worker threads. @throws RangeError for an invalid port range, address or number of workers. */
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

class WorkerPool implements MediaPlane {
  readonly #options: MediaPlaneOptions;
  readonly #ports: PortPairs;
  readonly #threads: SessionThreads<MediaThread>;
  #closing: Promise<void> | null = null;

  constructor(options: MediaPlaneOptions) {
    this.#options = options;
    this.#ports = new PortPairs({ min: options.rtpPortMin, max: options.rtpPortMax });
    this.#threads = new SessionThreads({
      threads: options.workers,
      entry: options.workerFile ?? new URL('./worker.ts', import.meta.url),
      name: 'the media worker',
      dataOf: () => ({
        rtpIo: options.rtpIo ?? 'auto',
        datagramsMemory: datagramsMemory(),
        loadMemory: new SharedArrayBuffer(WorkerLoad.BYTES),
      }),
      loadOf: ({ loadMemory }, sessions) => {
        const load = loadOf(new WorkerLoad(loadMemory).read(), sessions, monotonicMs());
        return load < FULL ? load : Number.POSITIVE_INFINITY;
      },
      onLost: (fields) => options.logger?.warn(fields, 'media worker lost'),
    });
  }

  async openSession(options: OpenSessionOptions): Promise<MediaSession> {
    options.signal.throwIfAborted();
    let refusals = 0;
    let losses = 0;
    for (;;) {
      if (this.#closing !== null) throw new TandemError('SHUTTING_DOWN', 'The media plane is shutting down.');
      const ports = this.#takePorts(options.parties);
      const place = this.#threads.take();
      if (place === null) {
        ports.releaseAll();
        throw overloaded();
      }
      try {
        const session = await this.#openAt(place, ports, options);
        if (!options.signal.aborted) return session;
        await session.close();
        break;
      } catch (error) {
        ports.releaseAll();
        if (!(error instanceof ThreadError)) throw error;
        const { code } = error;
        if (code === PORT_TAKEN && ++refusals <= this.#ports.size) continue;
        if (code === THREAD_LOST && ++losses < MOST_LOST_WORKERS_PER_OPEN) continue;
        if (code === PORT_TAKEN || code === THREAD_LOST) throw noFreeChannel();
        throw toTandemError(error);
      }
    }
    throw options.signal.reason;
  }

  capacity(): MediaCapacity {
    const readings = this.#threads.data.map(({ loadMemory }) => new WorkerLoad(loadMemory).read());
    return {
      load: Math.min(FULL, this.#threads.leastLoad),
      sessions: this.#threads.sessions,
      maxSessions: Math.floor(this.#ports.size / 2),
      workers: this.#threads.alive,
      utilization: readings.map(({ utilization }) => utilization),
      latenessMs: readings.map(({ latenessMs }) => latenessMs),
    };
  }

  async dump(): Promise<unknown> {
    const workers = await this.#threads.dump();
    const { sessions, maxSessions, load } = this.capacity();
    return { sessions, maxSessions, load, freePortPairs: this.#ports.freeCount, workers };
  }

  close(): Promise<void> {
    this.#closing ??= this.#threads.close();
    return this.#closing;
  }

  async #openAt(place: Place<MediaThread>, ports: TakenPorts, options: OpenSessionOptions): Promise<MediaSession> {
    const { sessionKey, thread } = place;
    try {
      await thread.call('session.open', {
        sessionKey,
        bindHost: this.#options.rtpHost,
        rtpPorts: Object.fromEntries([...ports.local].map(([party, { rtpPort }]) => [party, rtpPort])),
        rtpTimeoutMs: options.rtpTimeoutMs ?? DEFAULT_RTP_TIMEOUT_MS,
      });
    } catch (error) {
      place.leave();
      throw error;
    }
    const session = new PooledSession({
      sessionId: options.sessionId,
      sessionKey,
      thread,
      ports,
      signal: options.signal,
      onEvent: (event) => this.#notify(options, () => options.onEvent(event)),
      onMeasured: (measurement) => this.#notify(options, () => options.onMeasured?.(measurement)),
      onClosed: () => {
        place.leave();
        ports.releaseAll();
      },
    });
    place.fill(session);
    return session;
  }

  #takePorts(parties: readonly PartyId[]): TakenPorts {
    const ports = new TakenPorts(this.#ports, this.#options.advertisedHost ?? this.#options.rtpHost);
    try {
      for (const party of parties) ports.take(party);
      return ports;
    } catch (error) {
      ports.releaseAll();
      throw error;
    }
  }

  /** A listener that throws must not stop the events of other sessions. */
  #notify(options: OpenSessionOptions, notify: () => void): void {
    try {
      notify();
    } catch (error) {
      this.#options.logger?.warn({ err: error, sessionId: options.sessionId }, 'media event listener threw');
    }
  }
}

class TakenPorts implements SessionPorts {
  readonly local = new Map<PartyId, LocalAddress>();
  readonly #pairs: PortPairs;
  readonly #host: string;

  constructor(pairs: PortPairs, host: string) {
    this.#pairs = pairs;
    this.#host = host;
  }

  get most(): number {
    return this.#pairs.size;
  }

  take(party: PartyId): LocalAddress {
    const rtpPort = this.#pairs.take();
    if (rtpPort === null) throw noFreeChannel();
    const local = { host: this.#host, rtpPort };
    this.local.set(party, local);
    return local;
  }

  release(party: PartyId): void {
    const local = this.local.get(party);
    if (local !== undefined && this.local.delete(party)) this.#pairs.release(local.rtpPort);
  }

  releaseAll(): void {
    for (const party of [...this.local.keys()]) this.release(party);
  }
}

function overloaded(): TandemError {
  return new TandemError(
    'no_free_channel',
    'The media workers are busy with the calls they have. Try again when calls have ended, or raise MEDIA_WORKERS.',
    { retryAfterS: 5 },
  );
}

function noFreeChannel(): TandemError {
  return new TandemError(
    'no_free_channel',
    'All media ports are in use. Try again when a call has ended, or widen RTP_PORT_MIN to RTP_PORT_MAX.',
    {
      retryAfterS: 5,
    },
  );
}
