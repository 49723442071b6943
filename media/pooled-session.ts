import type { MessagePort, Transferable } from 'node:worker_threads';
import { TandemError } from '../machines/errors.ts';
import type { LegQuality, MediaEvent, RemoteMedia } from '../machines/events.ts';
import { type SupervisedThread, THREAD_LOST, ThreadError } from '../runtime/supervised-thread.ts';
import type { AnswerOf, RequestOf } from '../runtime/thread-protocol.ts';
import {
  isMeasurement,
  type KeyPresses,
  type LegSample,
  type LocalAddress,
  type MediaMeasurement,
  type MediaSession,
  type PartyId,
  type PlayedSound,
  type RecordingOptions,
  type RecordingSummary,
  type Routing,
  type SendingEnd,
} from './media-plane.ts';
import { repairRecording } from './recording/sealed-wav.ts';
import type { ThreadSession } from './session-threads.ts';
import {
  BAD_REMOTE_ADDRESS,
  type MediaCalls,
  type MediaThread,
  PORT_TAKEN,
  STORAGE_FAILED,
} from './worker-protocol.ts';

interface PooledSessionOptions {
  sessionId: string;
  sessionKey: number;
  thread: SupervisedThread<MediaThread>;
  ports: SessionPorts;
  signal: AbortSignal;
  onEvent: (event: MediaEvent<PartyId>) => void;
  onMeasured: (measurement: MediaMeasurement) => void;
  onClosed: () => void;
}

export interface SessionPorts {
  readonly local: ReadonlyMap<PartyId, LocalAddress>;
  /** Number of pairs in the pool, the limit of attempts to find a free one. */
  readonly most: number;
  /** @throws TandemError `no_free_channel` */
  take(party: PartyId): LocalAddress;
  /** Idempotent. */
  release(party: PartyId): void;
}

type SessionCall = Exclude<keyof MediaCalls, 'session.open'>;

/** The actors' end of a session. Every method is a request to the worker that owns the sockets. */
export class PooledSession implements MediaSession, ThreadSession<MediaEvent<PartyId> | MediaMeasurement> {
  readonly sessionId: string;
  readonly sessionKey: number;
  readonly thread: SupervisedThread<MediaThread>;
  readonly #options: PooledSessionOptions;
  /** Kept after the session was closed. */
  readonly #local: Map<PartyId, LocalAddress>;
  #state: 'open' | 'closing' | 'lost' = 'open';
  #recording: RecordingOptions | null = null;
  #closing: Promise<void> | null = null;
  #recordingAtClose: RecordingSummary | null = null;

  constructor(options: PooledSessionOptions) {
    this.sessionId = options.sessionId;
    this.sessionKey = options.sessionKey;
    this.thread = options.thread;
    this.#options = options;
    this.#local = new Map(options.ports.local);
    options.signal.addEventListener('abort', this.#onAbort, { once: true });
    if (options.signal.aborted) this.#onAbort();
  }

  localOf(party: PartyId): LocalAddress {
    const local = this.#local.get(party);
    if (local === undefined) throw new RangeError(`the session has no party ${party}`);
    return local;
  }

  async addParty(party: PartyId): Promise<LocalAddress> {
    const { ports } = this.#options;
    if (this.#local.has(party)) throw new RangeError(`the session has a party ${party} already`);
    for (let refusals = 0; ; refusals += 1) {
      if (this.#state !== 'open') throw closed();
      const local = ports.take(party);
      try {
        await this.thread.call('party.add', { sessionKey: this.sessionKey, party, rtpPort: local.rtpPort });
        this.#local.set(party, local);
        return local;
      } catch (error) {
        ports.release(party);
        const isTaken = error instanceof ThreadError && error.code === PORT_TAKEN;
        if (!isTaken || refusals >= ports.most) throw toTandemError(error);
      }
    }
  }

  async removeParty(party: PartyId): Promise<LegQuality | null> {
    if (this.#state !== 'open' || !this.#local.has(party)) return null;
    const quality = await this.#call('party.remove', { party });
    this.#local.delete(party);
    this.#options.ports.release(party);
    return quality;
  }

  async connectParty(party: PartyId, remote: RemoteMedia): Promise<void> {
    await this.#call('party.connect', { party, remote });
  }

  async setRouting(routing: Routing): Promise<void> {
    await this.#call('routing.set', { routing });
  }

  async play(party: PartyId, sound: PlayedSound): Promise<SendingEnd> {
    return await this.#call('party.play', { party, sound }, [sound.samples.buffer]);
  }

  async sendDigits(party: PartyId, presses: KeyPresses): Promise<SendingEnd> {
    return await this.#call('party.sendDigits', { party, ...presses });
  }

  async stopPlaying(party: PartyId): Promise<void> {
    await this.#call('party.stopPlaying', { party });
  }

  async startRecording(options: RecordingOptions): Promise<void> {
    await this.#call('recording.start', options);
    this.#recording = options;
  }

  async beep(parties: readonly PartyId[]): Promise<void> {
    await this.#call('parties.beep', { parties });
  }

  async pauseRecording(isPaused: boolean): Promise<void> {
    await this.#call('recording.pause', { isPaused });
  }

  async stopRecording(): Promise<RecordingSummary | null> {
    const recording = this.#recording;
    this.#recording = null;
    if (this.#state === 'open') {
      try {
        return await this.#call('recording.stop', {});
      } catch (error) {
        if (this.#state === 'open') throw error;
      }
    }
    await this.#closing?.catch(() => {});
    if (this.#state !== 'lost') return this.#recordingAtClose;
    return recording === null ? null : summaryOfRepaired(recording);
  }

  async startTap(ports: Readonly<Record<PartyId, MessagePort>>): Promise<void> {
    await this.#call('tap.start', { ports }, Object.values(ports));
  }

  /** A closed session has stopped its taps. */
  async stopTap(party: PartyId): Promise<void> {
    if (this.#state === 'open') await this.#call('tap.stop', { party });
    else await this.#closing?.catch(() => {});
  }

  async detectMachine(party: PartyId): Promise<void> {
    await this.#call('machine.detect', { party });
  }

  async setMeasured(isMeasured: boolean): Promise<void> {
    await this.#call('session.measure', { isMeasured });
  }

  async quality(): Promise<Record<PartyId, LegQuality | null>> {
    if (this.#state === 'open') return await this.#call('quality.measure', {});
    return Object.fromEntries([...this.#local.keys()].map((party) => [party, null]));
  }

  async sampleQuality(): Promise<Record<PartyId, LegSample | null>> {
    return this.#state === 'open' ? await this.#call('quality.sample', {}) : {};
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /** Called by the pool for an event of the worker. */
  deliver(event: MediaEvent<PartyId> | MediaMeasurement): void {
    if (isMeasurement(event)) this.#options.onMeasured(event);
    else this.#options.onEvent(event);
  }

  /** Called by the pool when the worker died. */
  lose(detail: string): void {
    if (this.#state === 'lost') return;
    const wasOpen = this.#state === 'open';
    this.#state = 'lost';
    this.#options.signal.removeEventListener('abort', this.#onAbort);
    this.#options.onClosed();
    if (wasOpen) this.#options.onEvent({ type: 'media.lost', detail });
  }

  readonly #onAbort = (): void => {
    // Closing fails only if the worker died, which `lose` reports.
    this.close().catch(() => {});
  };

  async #close(): Promise<void> {
    if (this.#state === 'lost') return;
    this.#state = 'closing';
    this.#options.signal.removeEventListener('abort', this.#onAbort);
    try {
      this.#recordingAtClose = await this.thread.call('session.close', { sessionKey: this.sessionKey });
    } catch (error) {
      if (error instanceof ThreadError && error.code === THREAD_LOST) return;
      throw toTandemError(error);
    }
    this.#options.onClosed();
  }

  async #call<Call extends SessionCall>(
    type: Call,
    request: Omit<MediaCalls[Call]['request'], 'sessionKey'>,
    transfer: readonly Transferable[] = [],
  ): Promise<AnswerOf<MediaThread, Call>> {
    if (this.#state !== 'open') throw closed();
    try {
      const message = { ...request, sessionKey: this.sessionKey } as RequestOf<MediaThread, Call>;
      return await this.thread.call(type, message, transfer);
    } catch (error) {
      throw toTandemError(error);
    }
  }
}

function closed(): TandemError {
  return new TandemError('INTERNAL', 'The media session is closed.');
}

export function toTandemError(error: unknown): unknown {
  if (!(error instanceof ThreadError)) return error;
  const { code, message } = error;
  if (code === BAD_REMOTE_ADDRESS) return new TandemError('VALIDATION_FAILED', message, { cause: error });
  if (code === STORAGE_FAILED)
    return new TandemError('STORAGE_UNAVAILABLE', `Recording cannot start: ${message}`, { cause: error });
  return new TandemError('INTERNAL', message, { cause: error });
}

/** The worker died, but its recording exists. */
async function summaryOfRepaired({ filePath, seal = null }: RecordingOptions): Promise<RecordingSummary | null> {
  try {
    const length = await repairRecording(filePath, seal === null ? null : () => seal);
    return length === null ? null : { filePath, ...length };
  } catch {
    return null;
  }
}
