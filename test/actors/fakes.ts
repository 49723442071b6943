import { randomUUID } from 'node:crypto';
import type { MessagePort } from 'node:worker_threads';
import {
  type AnyActorLogic,
  type AnyEventObject,
  createActor,
  type EventFromLogic,
  type InputFrom,
  setup,
} from 'xstate';
import type { CallJournal } from '../../actors/call-journal.ts';
import type { LiveCall } from '../../actors/call-registry.ts';
import { routingOf } from '../../actors/call-routing.ts';
import { SpeechUnavailableError } from '../../actors/call-speech.ts';
import type { Deliverer } from '../../actors/callbacks/deliverer.ts';
import type { Logger } from '../../actors/logger.ts';
import type { RecordingDesk } from '../../actors/recording.actor.ts';
import type { TrunkTargets } from '../../actors/trunk-targets.ts';
import { TandemError } from '../../machines/errors.ts';
import type { LegEvent, LegName, LegQuality, RemoteMedia } from '../../machines/events.ts';
import type { RecordingInput } from '../../machines/recording.machine.ts';
import type {
  KeyPresses,
  LegSample,
  LocalAddress,
  MediaPlane,
  MediaSession,
  OpenSessionOptions,
  PlaybackEnd,
  PlayedSound,
  RecordingOptions,
  RecordingSummary,
  Routing,
  SendingEnd,
} from '../../media/media-plane.ts';
import type { Clock } from '../../runtime/clock.ts';
import type {
  DialRequest,
  InboundCall,
  LegHandle,
  RegisterOutcome,
  SipGateway,
  TrunkEndpoint,
  TrunkProbe,
  TrunkRegistration,
  TrunkSign,
} from '../../sip/sip-gateway.ts';
import type { Sql, Tx } from '../../storage/database.ts';
import type { NodeDirectory } from '../../storage/nodes/node-directory.ts';
import type { CallRow } from '../../storage/queries/calls.ts';
import { gatewaysOf } from '../../storage/queries/trunk-gateways.ts';
import type { DialedTrunk } from '../../storage/queries/trunks.ts';
import { partial } from '../partial.ts';
import { NOW } from '../storage/seed.ts';

/** Time stands still until `advance`, which runs timers as they become due. */
export interface TestClock extends Clock {
  advance(byMs: number): void;
  /** Steps the wall clock without affecting timers and durations. */
  jumpTo(time: Date): void;
  /** Remaining delays of the pending timers. */
  waiting(): number[];
}

export function createTestClock(startAt: Date = NOW): TestClock {
  let nowMs = 0;
  /** Offset between the wall clock and the monotonic clock. */
  let wallMs = startAt.getTime();
  const timers = new Set<{ atMs: number; run: () => void }>();
  return {
    now: () => wallMs + nowMs,
    monotonicMs: () => nowMs,
    setTimeout(callback, delayMs) {
      const timer = { atMs: nowMs + delayMs, run: () => callback() };
      timers.add(timer);
      return timer;
    },
    clearTimeout: (handle) => void timers.delete(handle as { atMs: number; run: () => void }),
    advance(byMs) {
      const untilMs = nowMs + byMs;
      for (;;) {
        const [next] = [...timers].filter((it) => it.atMs <= untilMs).sort((a, b) => a.atMs - b.atMs);
        if (next === undefined) break;
        timers.delete(next);
        nowMs = next.atMs;
        next.run();
      }
      nowMs = untilMs;
    },
    jumpTo(time) {
      wallMs = time.getTime() - nowMs;
    },
    waiting: () => [...timers].map((timer) => timer.atMs - nowMs),
  };
}

export interface LogLine {
  level: 'debug' | 'info' | 'warn' | 'error';
  fields: Record<string, unknown>;
  message: string;
}

export function createTestLogger(): Logger & { lines: LogLine[]; messages(level?: LogLine['level']): string[] } {
  const lines: LogLine[] = [];
  const at = (level: LogLine['level']) => (fields: object, message: string) =>
    void lines.push({ level, fields: fields as Record<string, unknown>, message });
  const logger = {
    lines,
    messages: (level?: LogLine['level']) =>
      lines.filter((line) => level === undefined || line.level === level).map((line) => line.message),
    debug: at('debug'),
    info: at('info'),
    warn: at('warn'),
    error: at('error'),
    child: () => logger,
  };
  return logger;
}

export const LOCAL_MEDIA = {
  agent: { host: '127.0.0.1', rtpPort: 10_000 },
  customer: { host: '127.0.0.1', rtpPort: 10_002 },
};

export function remoteMedia(rtpPort = 20_000): RemoteMedia {
  return {
    host: '127.0.0.1',
    rtpPort,
    rtcpPort: rtpPort + 1,
    codec: 'PCMU',
    payloadType: 0,
    telephoneEventPayloadType: 101,
    direction: 'sendrecv',
  };
}

/** A media plane without sockets: its sessions record commands, and fail where the test says so. */
export class FakeMediaPlane implements MediaPlane {
  readonly sessions: FakeMediaSession[] = [];
  workers = 1;
  load = 0;
  /** Runs before a session opens; may throw or wait. */
  onOpen: (options: OpenSessionOptions) => void | Promise<void> = () => undefined;

  async openSession(options: OpenSessionOptions): Promise<MediaSession> {
    await this.onOpen(options);
    const session = new FakeMediaSession(options);
    this.sessions.push(session);
    return session;
  }

  refuse(): void {
    this.onOpen = () => {
      throw new TandemError('no_free_channel', 'the port range is used up');
    };
  }

  get session(): FakeMediaSession {
    if (this.sessions.length !== 1) throw new Error(`${this.sessions.length} sessions are open, not one`);
    return this.sessions[0] as FakeMediaSession;
  }

  capacity() {
    const { workers, load } = this;
    return { sessions: this.sessions.length, maxSessions: 100, workers, load, utilization: [load], latenessMs: [0] };
  }

  async dump(): Promise<unknown> {
    return {};
  }

  async close(): Promise<void> {}
}

const PATHS = ['idle', 'ringback', 'early-media', 'bridged'] as const;

export class FakeMediaSession implements MediaSession {
  readonly options: OpenSessionOptions;
  /** Start and end of each command. */
  readonly log: string[] = [];
  recordingPath: string | null = null;
  /** Runs within each command; may throw or wait. */
  onCommand: (command: string) => void | Promise<void> = () => undefined;
  measured: Record<LegName, LegQuality | null> = { agent: null, customer: null };
  closed = 0;

  constructor(options: OpenSessionOptions) {
    this.options = options;
    options.signal.addEventListener('abort', () => void this.close(), { once: true });
  }

  localOf(party: string): LocalAddress {
    return LOCAL_MEDIA[party as LegName];
  }

  async addParty(party: string): Promise<LocalAddress> {
    await this.#run(`add ${party}`);
    return { host: '127.0.0.1', rtpPort: 10_004 };
  }

  async removeParty(party: string): Promise<null> {
    await this.#run(`remove ${party}`);
    return null;
  }

  async connectParty(party: string, remote: RemoteMedia): Promise<void> {
    await this.#run(`connect ${party} ${remote.rtpPort}`);
  }

  async setRouting(routing: Routing): Promise<void> {
    const path = PATHS.find((name) => routingOf(name) === routing);
    await this.#run(`path ${path}`);
  }

  playStops = 0;

  async stopPlaying(): Promise<void> {
    this.playStops += 1;
  }

  onDigits: () => PlaybackEnd | Promise<PlaybackEnd> = () => 'played';

  async sendDigits(party: string, { digits, yields = false }: KeyPresses): Promise<PlaybackEnd> {
    await this.#run(`press ${digits} to ${party}${yields ? ' unless it hears a sound' : ''}`);
    return await this.onDigits();
  }

  async pauseRecording(isPaused: boolean): Promise<void> {
    await this.#run(isPaused ? 'pause recording' : 'resume recording');
  }

  onPlay: (sound: PlayedSound) => SendingEnd | Promise<SendingEnd> = () => 'played';

  async play(leg: string, sound: PlayedSound): Promise<SendingEnd> {
    const { samples, over, playbackId } = sound;
    await this.#run(`play ${samples.length} ${over ? 'over' : 'alone'}`);
    this.options.onEvent({ type: 'playback.started', leg, ...(playbackId && { playbackId }) });
    return await this.onPlay(sound);
  }

  async startRecording({ filePath, seal }: RecordingOptions): Promise<void> {
    await this.#run(seal ? 'record sealed' : 'record');
    this.recordingPath = filePath;
  }

  async beep(parties: readonly string[]): Promise<void> {
    await this.#run(`beep ${parties.join(' ')}`);
  }

  async stopRecording(): Promise<RecordingSummary | null> {
    await this.#run('stop recording');
    return this.recordingPath === null ? null : { filePath: this.recordingPath, bytes: 3_244, durationMs: 100 };
  }

  /** Ports of the taps, by party. */
  taps: Record<string, MessagePort> = {};

  async startTap(ports: Readonly<Record<string, MessagePort>>): Promise<void> {
    this.taps = { ...this.taps, ...ports };
    await this.#run(`tap ${Object.keys(ports).join(' ')}`);
  }

  async stopTap(party: string): Promise<void> {
    await this.#run(`stop tap ${party}`);
    this.taps[party]?.close();
  }

  async detectMachine(party: string): Promise<void> {
    await this.#run(`detect machine at ${party}`);
  }

  isMeasured = false;

  async setMeasured(isMeasured: boolean): Promise<void> {
    this.isMeasured = isMeasured;
  }

  async quality(): Promise<Record<LegName, LegQuality | null>> {
    await this.#run('measure');
    return this.measured;
  }

  sampled: Record<string, LegSample | null> = {};

  async sampleQuality(): Promise<Record<string, LegSample | null>> {
    return this.sampled;
  }

  async close(): Promise<void> {
    this.closed += 1;
  }

  async #run(command: string): Promise<void> {
    this.log.push(command);
    await this.onCommand(command);
    this.log.push(`${command} done`);
  }
}

export interface FakeLeg {
  request: DialRequest;
  hangups: string[];
  holds: (boolean | 'again')[];
  emit(event: LegEvent): void;
  onHangup: () => void;
}

/** A gateway that sends nothing: records INVITEs, and the test plays the peers. */
export class FakeSip implements SipGateway {
  /** Legs of an earlier process that had to be ended. */
  readonly ended: LegHandle[] = [];

  endLegs(handles: readonly LegHandle[]): void {
    this.ended.push(...handles);
  }

  readonly legs: FakeLeg[] = [];
  readonly probed: { trunk: TrunkEndpoint; signal: AbortSignal }[] = [];
  onProbe: (trunk: TrunkEndpoint) => boolean | Promise<boolean> = () => true;
  /** Simulates the peer of a leg when it is dialed. */
  onDial: (leg: FakeLeg) => void = () => undefined;
  #state: SipGateway['state'];
  readonly #listeners = new Set<(state: SipGateway['state']) => void>();

  constructor(state: SipGateway['state'] = 'connected') {
    this.#state = state;
  }

  get state() {
    return this.#state;
  }

  become(state: SipGateway['state']): void {
    this.#state = state;
    for (const listener of this.#listeners) listener(state);
  }

  onStateChange(listener: (state: SipGateway['state']) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** Delivers an inbound call, once a handler exists. */
  bring: (call: InboundCall) => void = () => undefined;

  onCall(listener: (call: InboundCall) => void): void {
    this.bring = listener;
  }

  dial(request: DialRequest) {
    const leg: FakeLeg = { request, hangups: [], holds: [], emit: request.onEvent, onHangup: () => undefined };
    this.legs.push(leg);
    this.onDial(leg);
    return {
      hangup(cause: string) {
        leg.hangups.push(cause);
        leg.onHangup();
      },
      hold(isHeld: boolean) {
        leg.holds.push(isHeld);
      },
      offerAgain() {
        leg.holds.push('again');
      },
    };
  }

  async probe(trunk: TrunkEndpoint, signal: AbortSignal): Promise<TrunkProbe> {
    this.probed.push({ trunk, signal });
    const reachable = await this.onProbe(trunk);
    return { reachable, silence: reachable ? null : 'no_response', sipStatus: reachable ? 200 : null, roundTripMs: 1 };
  }

  /** REGISTER requests with their account. */
  readonly registers: { trunk: TrunkEndpoint; expiresS: number }[] = [];
  onRegister: (expiresS: number, trunk: TrunkEndpoint) => RegisterOutcome | Promise<RegisterOutcome> = (expiresS) => ({
    type: 'registered',
    expiresS,
  });

  /** Closes the connection of the last opened registration. */
  loseRegistration: () => void = () => undefined;

  openRegistration(trunk: TrunkEndpoint, onLost: () => void = () => undefined): TrunkRegistration {
    this.loseRegistration = onLost;
    return {
      register: async ({ expiresS }) => {
        this.registers.push({ trunk, expiresS });
        return await this.onRegister(expiresS, trunk);
      },
    };
  }

  dump(): unknown {
    return {};
  }

  async close(): Promise<void> {}
}

/** Allows every trunk at its configured address. */
/** The gateways of a trunk in order. */
export function everyGateway(
  trunk: DialedTrunk,
  onSign: (sign: TrunkSign) => void = () => {},
  isGone: (sipUri: string) => boolean = () => false,
) {
  return gatewaysOf(trunk).map((gateway) => ({ gateway, onSign, isGone: async () => isGone(gateway.sipUri) }));
}

export const anyTrunkTarget: TrunkTargets = {
  locate: async ({ transport }) => [
    { address: '192.0.2.1', port: null, transport: transport === 'auto' ? 'udp' : transport },
  ],
};

export function createFakeDeliverer(): Deliverer & { enqueued: string[] } {
  const enqueued: string[] = [];
  return {
    enqueued,
    start: async () => {},
    enqueue: async (deliveryId: string) => void enqueued.push(deliveryId),
    sweep: async () => {},
    dump: () => ({ running: 0, waiting: 0, lanes: 0 }),
    close: async () => {},
  };
}

export function createFakeDesk(): RecordingDesk & {
  asked: RecordingInput[];
  retried: RecordingInput[];
  onRetry: (recording: RecordingInput) => Promise<void>;
} {
  const asked: RecordingInput[] = [];
  const retried: RecordingInput[] = [];
  const desk = {
    asked,
    retried,
    onRetry: async (_: RecordingInput) => {},
    store: (recording: RecordingInput) => void asked.push(recording),
    async retry(recording: RecordingInput) {
      retried.push(recording);
      await desk.onRetry(recording);
    },
    async close() {},
  };
  return desk;
}

/** A database whose transactions pass through `begin`, which may fail first, wait, or lose the response of `run`. */
export function sqlWithFaults(sql: Sql, begin: (run: () => Promise<unknown>) => Promise<unknown>): Sql {
  return new Proxy(sql, {
    get(target, key, receiver) {
      if (key !== 'begin') return Reflect.get(target, key, receiver);
      return (work: (tx: Tx) => Promise<unknown>) => begin(() => target.begin(work));
    },
  });
}

/** Runs one port of a machine under a parent that records the events from the port. */
export function runPort<Port extends AnyActorLogic>(port: Port, input: InputFrom<Port>) {
  const received: AnyEventObject[] = [];
  const failed: unknown[] = [];
  const parent = setup({ actors: { port: port as AnyActorLogic } }).createMachine({
    invoke: {
      id: 'port',
      src: 'port',
      input,
      onError: { actions: ({ event }) => failed.push(event.error) },
    },
    on: {
      '*': { actions: ({ event }) => received.push(event) },
    },
  });
  const actor = createActor(parent);
  actor.start();
  return {
    received,
    failed,
    send: (event: EventFromLogic<Port>) => actor.getSnapshot().children.port?.send(event),
    stop: () => void actor.stop(),
  };
}

/** A newly admitted row without a database. */
export function callRow(overrides: Partial<CallRow> = {}): CallRow {
  return {
    callId: `call_${randomUUID()}`,
    workspaceId: randomUUID(),
    referenceId: 'reference-1',
    trunkId: randomUUID(),
    did: '+911140000001',
    agentNumber: '+919810000001',
    agentUserId: null,
    customerNumber: '+919810000002',
    state: 'pending',
    seq: 1,
    terminalEvent: null,
    hangupCause: null,
    leg: null,
    error: null,
    errorDetail: null,
    startTime: NOW,
    answerTime: null,
    endTime: null,
    talkSeconds: null,
    totalSeconds: null,
    metadata: null,
    recordRequested: false,
    recordingBeep: false,
    recordingId: null,
    recordingStatus: null,
    transcribeRequested: false,
    onMachine: null,
    announceCharacters: null,
    whisperCharacters: null,
    characterPriceNano: 0n,
    announced: false,
    whispered: false,
    quality: null,
    legs: [],
    legSeconds: null,
    legsCostNano: null,
    callbackUrl: null,
    callbackSecretEncrypted: null,
    callbackSecretLast4: null,
    agentRingTimeoutS: 30,
    customerRingTimeoutS: 45,
    maxDurationS: 3600,
    pricePerMinuteNano: 60_000_000n,
    holdId: null,
    costNano: null,
    speechCostNano: null,
    billingStatus: null,
    placedVia: 'api_key',
    direction: 'outbound',
    apiKeyId: null,
    apiKeyName: null,
    createdByUserId: null,
    ownerNode: 'node-1',
    ownerBoot: 'boot-1',
    ownerSeenAt: null,
    createdAt: NOW,
    ...overrides,
  };
}

/** A registry entry without a machine: the part of a call that a port sees. */
export function liveCall(row: CallRow, journal: Partial<CallJournal> = {}): LiveCall {
  return {
    row,
    actor: partial({}),
    journal: {
      append: () => {},
      drained: async () => {},
      bridgedAt: () => null,
      recordingId: () => null,
      guestsTalk: () => ({ billedSeconds: 0, talking: 0 }),
      ...journal,
    },
    inbound: null,
    guests: new Map(),
    sounds: new Map(),
    abort: new AbortController(),
    speech: { prepare() {}, take: () => Promise.reject(new SpeechUnavailableError('there is nothing to say')) },
    trunk: null,
    media: null,
    admittedAt: { at: row.createdAt, monotonicMs: 0 },
    clearedAt: null,
    control: async () => {},
    requireTalk: () => {},
    initiated: new Promise(() => {}),
    settled: new Promise(() => {}),
  };
}

/** Lets pending promises settle. */
export function quiet(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** A node that is alone on its database. */
export const noOtherNodes = {
  onLost: () => undefined,
  renew: async () => undefined,
} satisfies Pick<NodeDirectory, 'onLost' | 'renew'>;
