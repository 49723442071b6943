import type { MediaEvent } from '../machines/events.ts';
import { raisePriority } from '../runtime/priority.ts';
import { type ServedThread, serveThread } from '../runtime/serve-thread.ts';
import type { ThreadFailure } from '../runtime/thread-protocol.ts';
import { type OpenedDatagrams, openDatagrams } from './datagrams/open-datagrams.ts';
import type { MediaMeasurement, PartyId, RecordingSummary } from './media-plane.ts';
import { FastPath } from './relay/fast-path.ts';
import { FramePacer } from './relay/frame-pacer.ts';
import { SendRing } from './relay/send-ring.ts';
import { PortTakenError, RelaySession, RemoteAddressError, SESSION_TICK_MS } from './relay/session.ts';
import type { ThreadDump } from './session-threads.ts';
import { SessionTicker } from './session-ticker.ts';
import { IDLE, LoadMeter, WorkerLoad } from './worker-load.ts';
import {
  BAD_REMOTE_ADDRESS,
  type MediaCalls,
  type MediaThread,
  PORT_TAKEN,
  storageFailure,
} from './worker-protocol.ts';

/** Entry of a media worker thread, which owns sockets and sessions. */

const LOAD_TICK_MS = 25;

interface MediaWorkerOptions {
  opened: OpenedDatagrams;
  load: WorkerLoad;
  report: (sessionKey: number, event: MediaEvent<PartyId> | MediaMeasurement) => void;
}

class MediaWorker {
  readonly #report: MediaWorkerOptions['report'];
  readonly #sessions = new Map<number, RelaySession>();
  readonly #opened: OpenedDatagrams;
  readonly #load: WorkerLoad;
  readonly #pacer = new FramePacer();
  readonly #sendRing = new SendRing();
  readonly #fastPath: FastPath;
  readonly #ticker = new SessionTicker(SESSION_TICK_MS);
  #loadTimer: NodeJS.Timeout | null = null;

  constructor({ opened, load, report }: MediaWorkerOptions) {
    this.#opened = opened;
    this.#fastPath = new FastPath(opened.datagrams);
    this.#load = load;
    this.#report = report;
  }

  readonly calls: ServedThread<MediaThread>['calls'] = {
    'session.open': (request) => this.#open(request),
    'party.add': ({ sessionKey, party, rtpPort }) => this.#session(sessionKey).addParty(party, rtpPort),
    'party.remove': ({ sessionKey, party }) => this.#session(sessionKey).removeParty(party),
    'party.connect': ({ sessionKey, party, remote }) => this.#session(sessionKey).connectParty(party, remote),
    'routing.set': ({ sessionKey, routing }) => this.#session(sessionKey).setRouting(routing),
    'party.play': ({ sessionKey, party, sound }) => this.#session(sessionKey).play(party, sound),
    'party.sendDigits': ({ sessionKey, party, ...presses }) => this.#session(sessionKey).sendDigits(party, presses),
    'party.stopPlaying': ({ sessionKey, party }) => this.#session(sessionKey).stopPlaying(party),
    'parties.beep': ({ sessionKey, parties }) => this.#session(sessionKey).beep(parties),
    'recording.start': ({ sessionKey, ...options }) => this.#session(sessionKey).startRecording(options),
    'recording.pause': ({ sessionKey, isPaused }) => this.#session(sessionKey).pauseRecording(isPaused),
    'recording.stop': ({ sessionKey }) => this.#session(sessionKey).stopRecording(),
    'tap.start': ({ sessionKey, ports }) => this.#session(sessionKey).startTap(ports),
    'tap.stop': ({ sessionKey, party }) => this.#session(sessionKey).stopTap(party),
    'machine.detect': ({ sessionKey, party }) => this.#session(sessionKey).detectMachine(party),
    'quality.measure': ({ sessionKey }) => this.#session(sessionKey).quality(),
    'quality.sample': ({ sessionKey }) => this.#session(sessionKey).sampleQuality(),
    'session.measure': ({ sessionKey, isMeasured }) => this.#session(sessionKey).setMeasured(isMeasured),
    'session.close': ({ sessionKey }) => this.#close(sessionKey),
  };

  dump(): ThreadDump {
    const sessions = [...this.#sessions].map(([sessionKey, session]) => ({ sessionKey, session: session.dump() }));
    const { datagrams, unavailable } = this.#opened;
    return { load: this.#load.read(), datagrams: { ...(datagrams.dump() as object), unavailable }, sessions };
  }

  async drain(): Promise<void> {
    await Promise.all([...this.#sessions.keys()].map((sessionKey) => this.#close(sessionKey)));
    this.#opened.datagrams.close();
  }

  async #open(request: MediaCalls['session.open']['request']): Promise<void> {
    const { sessionKey } = request;
    const session = await RelaySession.open({
      bindHost: request.bindHost,
      rtpPorts: request.rtpPorts,
      rtpTimeoutMs: request.rtpTimeoutMs,
      datagrams: this.#opened.datagrams,
      pacer: this.#pacer,
      sendRing: this.#sendRing,
      fastPath: this.#fastPath,
      post: (event) => this.#report(sessionKey, event),
    });
    this.#sessions.set(sessionKey, session);
    this.#ticker.add(session);
    this.#measureLoad();
  }

  #measureLoad(): void {
    if (this.#loadTimer !== null) return;
    const packets = (): number => this.#opened.datagrams.received;
    const meter = new LoadMeter({ load: this.#load, tickMs: LOAD_TICK_MS, packets });
    this.#loadTimer = setInterval(() => meter.tick(), LOAD_TICK_MS);
  }

  async #close(sessionKey: number): Promise<RecordingSummary | null> {
    const session = this.#sessions.get(sessionKey);
    const recording = (await session?.close()) ?? null;
    if (session !== undefined) this.#ticker.remove(session);
    this.#sessions.delete(sessionKey);
    if (this.#sessions.size === 0 && this.#loadTimer !== null) {
      clearInterval(this.#loadTimer);
      this.#loadTimer = null;
      // Keeps the measured cost of a call.
      const { utilizationOfACall } = this.#load.read();
      this.#load.write({ ...IDLE, utilizationOfACall });
    }
    return recording;
  }

  #session(sessionKey: number): RelaySession {
    const session = this.#sessions.get(sessionKey);
    if (session === undefined) throw new RangeError('the media session is closed');
    return session;
  }
}

function failureOf(error: unknown, call: string): ThreadFailure {
  const message = error instanceof Error ? error.message : String(error);
  if (error instanceof PortTakenError) return { code: PORT_TAKEN, message };
  if (error instanceof RemoteAddressError) return { code: BAD_REMOTE_ADDRESS, message };
  if (call === 'recording.start' && !(error instanceof RangeError)) return storageFailure(error);
  return { code: null, message };
}

raisePriority();

// Must be last, because classes are not hoisted.
await serveThread<MediaThread>(async ({ data, report }) => {
  const worker = new MediaWorker({
    opened: await openDatagrams(data.rtpIo, data.datagramsMemory),
    load: new WorkerLoad(data.loadMemory),
    report: (sessionKey, event) => report({ sessionKey, event }),
  });
  return { ready: null, calls: worker.calls, dump: () => worker.dump(), drain: () => worker.drain(), failureOf };
});
