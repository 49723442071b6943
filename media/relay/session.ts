import type { MessagePort } from 'node:worker_threads';
import { CODECS, type Codec, type LegQuality, type MediaEvent, type RemoteMedia } from '../../machines/events.ts';
import { Gate } from '../../runtime/gate.ts';
import { isOpusPause } from '../codecs/opus.ts';
import type { DatagramSocket, Datagrams } from '../datagrams/datagrams.ts';
import { Endpoint } from '../datagrams/endpoint.ts';
import { dtmfTones } from '../dsp/dtmf-tones.ts';
import { recordingTone } from '../dsp/tones.ts';
import type {
  AudioSource,
  KeyPresses,
  LegSample,
  LoopedSound,
  MediaMeasurement,
  PartyId,
  PartyLevel,
  PlayedSound,
  RecordingOptions,
  RecordingSummary,
  Routing,
  SendingEnd,
} from '../media-plane.ts';
import { SessionRecorder } from '../recording/session-recorder.ts';
import { emptyRtpHeader, parseRtp, type RtpHeader } from '../rtp/packet.ts';
import { emptyTelephoneEvent, parseTelephoneEvent } from '../rtp/telephone-event.ts';
import { DigitSender } from './digit-sender.ts';
import type { FastPath } from './fast-path.ts';
import { type FramePacer, systemPacerClock } from './frame-pacer.ts';
import { type ForwardedPacket, type PayloadKind, RelayLeg } from './leg.ts';
import { LegTap } from './leg-tap.ts';
import { LevelMeter } from './level-meter.ts';
import { Mixer } from './mixer.ts';
import { Party } from './party.ts';
import { PartyAnswerDetector } from './party-answer-detector.ts';
import { PartyDtmfDetector } from './party-dtmf-detector.ts';
import { isOwnAddress, resolveHost } from './peer-address.ts';
import { Playback, type PlaybackOptions } from './playback.ts';
import { Playout } from './playout.ts';
import type { SendRing } from './send-ring.ts';

/**
 * A session: its parties and their routing, in a worker thread; `tick` does all periodic work. A party with one
 * source receives its packets unchanged, or its playout if the codecs differ. The mixer runs only for a party with
 * several sources.
 */

export const SESSION_TICK_MS = 250;
/** A longer stall of this thread may fill the recorder, which then writes up to now. */
const LONGEST_WITHOUT_TICK_MS = 4 * SESSION_TICK_MS;
const TICKS_PER_LEVEL = 2;
const TICKS_PER_QUALITY = 12;
const MOST_KEY_PRESSES_PER_TICK = 10;
/** With the one that sounds. */
const MOST_KEY_TONES = 20;
/** Within what all receivers of tones accept (ITU-T Q.24), however long the key was held. */
const KEY_TONE_MS = 100;
/** After this gap a party counts as silent, and its playout is no longer sent. */
const PLAYED_OUT_MS = 200;
/** The same for Opus, which sends a packet every 400 ms in a pause. */
const OPUS_PLAYED_OUT_MS = 1000;

interface RelayClock {
  /** Monotonic. */
  nowMs(): number;
  /** Wall clock, for RTCP. */
  unixMs(): number;
}

const systemRelayClock: RelayClock = { nowMs: systemPacerClock.nowMs, unixMs: () => Date.now() };

interface RelaySessionOptions {
  /** IP address that sockets bind to. */
  bindHost: string;
  /** Even RTP ports by party. RTCP ports are one above. */
  rtpPorts: Readonly<Record<PartyId, number>>;
  rtpTimeoutMs: number;
  /** The next three are shared by the sessions of a thread. */
  datagrams: Datagrams;
  pacer: FramePacer;
  sendRing: SendRing;
  fastPath: FastPath;
  clock?: RelayClock;
  post: (event: MediaEvent<PartyId> | MediaMeasurement) => void;
}

/** A port pair of the session is in use by another process. */
export class PortTakenError extends Error {
  override readonly name = 'PortTakenError';
  readonly code = 'PORT_TAKEN';
  readonly retryable = true;
  readonly rtpPort: number;

  constructor(rtpPort: number, cause: unknown) {
    super(`port pair ${rtpPort} cannot be bound`, { cause });
    this.rtpPort = rtpPort;
  }
}

/** We must not send to the peer's address. */
export class RemoteAddressError extends Error {
  override readonly name = 'RemoteAddressError';
  readonly code = 'REMOTE_ADDRESS';
  readonly retryable = false;
}

export class RelaySession {
  readonly #options: RelaySessionOptions;
  readonly #clock: RelayClock;
  readonly #parties = new Map<PartyId, Party>();
  readonly #header: RtpHeader = emptyRtpHeader();
  readonly #packet: ForwardedPacket = {
    datagram: Buffer.alloc(0),
    header: this.#header,
    kind: 'unknown',
    nowMs: 0,
    isLast: true,
  };
  readonly #event = emptyTelephoneEvent();
  readonly #faults: { count: number; last: string | null } = { count: 0, last: null };
  readonly #mixer = new Mixer();
  /** Set while a party receives a tone or a mix. */
  #stopFrames: (() => void) | null = null;
  #recorder: SessionRecorder | null = null;
  #closing: Promise<RecordingSummary | null> | null = null;
  /** Null while measurements are off. */
  #ticksMeasured: number | null = null;
  #tickedAtMs: number;
  /** Key presses that are played as tones, a lane for each listener. */
  readonly #keyTones = new Gate({ inAll: Infinity, perLane: 1, waitingPerLane: MOST_KEY_TONES - 1 });

  private constructor(options: RelaySessionOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemRelayClock;
    this.#tickedAtMs = this.#clock.nowMs();
  }

  /** @throws PortTakenError with the port; no socket stays open. */
  static async open(options: RelaySessionOptions): Promise<RelaySession> {
    const session = new RelaySession(options);
    try {
      for (const [id, rtpPort] of Object.entries(options.rtpPorts)) await session.addParty(id, rtpPort);
      return session;
    } catch (error) {
      await session.close();
      throw error;
    }
  }

  /** Adds a party without routing. @throws PortTakenError; RangeError if it exists already */
  async addParty(id: PartyId, rtpPort: number): Promise<void> {
    if (this.#parties.has(id) || this.#closing !== null) throw new RangeError('the party cannot be added');
    const { datagrams, bindHost, sendRing } = this.#options;
    let rtpSocket: DatagramSocket | null = null;
    let rtcpSocket: DatagramSocket;
    try {
      rtpSocket = await datagrams.bind({
        host: bindHost,
        port: rtpPort,
        receive: (datagram, source) => this.receiveRtp(id, datagram, source),
      });
      rtcpSocket = await datagrams.bind({
        host: bindHost,
        port: rtpPort + 1,
        receive: (datagram, source) => this.receiveRtcp(id, datagram, source),
      });
    } catch (error) {
      await rtpSocket?.close();
      throw new PortTakenError(rtpPort, error);
    }
    if (this.#closing !== null || this.#parties.has(id)) {
      await Promise.all([rtpSocket.close(), rtcpSocket.close()]);
      throw new RangeError('the party cannot be added');
    }
    const leg = new RelayLeg({ rtpSocket, rtcpSocket, sendRing, nowMs: this.#clock.nowMs() });
    const party: Party = new Party(id, rtpPort, leg, {
      onPress: (digit, ms) => this.#postKeyPress(party, digit, ms),
      onFault: (error) => this.#noteFault(error),
    });
    if (this.#ticksMeasured !== null) party.meter = new LevelMeter();
    party.recorder = this.#recorder;
    this.#parties.set(id, party);
  }

  /** Removes the party from all routing. Resolves with its quality once its ports are free. Idempotent. */
  async removeParty(id: PartyId): Promise<LegQuality | null> {
    const party = this.#parties.get(id);
    if (party === undefined) return null;
    this.#leaveFastPath();
    this.#parties.delete(id);
    const nowMs = this.#clock.nowMs();
    party.tap?.stop(nowMs);
    this.#recorder?.endVoice(id);
    for (const other of this.#parties.values()) {
      other.forwardsTo = other.forwardsTo.filter((listener) => listener !== party);
      other.mixedFor = other.mixedFor.filter((listener) => listener !== party);
      if (other.transcodes === party) other.transcodes = null;
      if (!other.mixOf.some((source) => source.party === id)) continue;
      other.mixOf = other.mixOf.filter((source) => source.party !== id);
      if (other.mixOf.length === 0) other.leg.setFeed('nothing');
    }
    this.#keepPlayouts(nowMs);
    this.#paceFrames();
    const quality = party.leg.quality();
    await party.leg.close(nowMs, this.#clock.unixMs());
    return quality;
  }

  /**
   * Sets or replaces a party's RTP destination.
   * @throws RemoteAddressError if the host has no address of our family, or the port is invalid or belongs to this
   * session.
   */
  async connectParty(id: PartyId, remote: RemoteMedia): Promise<void> {
    // Sending to an invalid port throws, which must not happen while relaying.
    if (!isPort(remote.rtpPort)) throw new RemoteAddressError('the media port of the peer is invalid');
    const address = await resolveHost(remote.host, this.#options.bindHost).catch((cause: unknown) => {
      throw new RemoteAddressError('the media address of the peer cannot be resolved', { cause });
    });
    // Two parties with each other's ports in their SDP would relay one packet in an endless loop.
    const isOwnPort = [...this.#parties.values()].some(({ rtpPort }) => (remote.rtpPort & ~1) === rtpPort);
    if (isOwnPort && isOwnAddress(address, this.#options.bindHost)) {
      throw new RemoteAddressError('the media address of the peer is our own');
    }
    await this.#party(id).leg.prepare(remote.codec);
    if (this.#closing !== null) return;
    const party = this.#party(id);
    const nowMs = this.#clock.nowMs();
    this.#leaveFastPath();
    if (!party.leg.isExpectedToSpeak) party.expectedSinceMs = nowMs;
    party.leg.connect(
      isPort(remote.rtcpPort) ? remote : { ...remote, rtcpPort: 0 },
      Endpoint.of(address, remote.rtpPort),
      nowMs,
    );
    this.#keepPlayouts(nowMs);
    this.#keepDtmfDetector(party);
  }

  /** Replaces the routing. @throws RangeError for an unknown party, before any change. */
  setRouting({ receives, watched, pressing = watched, recordedBeside = {}, tapMuted = [] }: Routing): void {
    if (this.#closing !== null) return;
    const named = [...Object.keys(receives), ...watched, ...pressing, ...Object.keys(recordedBeside), ...tapMuted];
    for (const id of named) this.#party(id);
    for (const sources of Object.values(receives)) {
      if (typeof sources === 'string') continue;
      for (const { party } of sources) this.#party(party);
    }
    this.#leaveFastPath();
    const nowMs = this.#clock.nowMs();
    for (const party of this.#parties.values()) {
      party.forwardsTo = [];
      party.mixedFor = [];
      const isWatched = watched.includes(party.id);
      if (isWatched && !party.isWatched) party.expectedSinceMs = nowMs;
      party.isWatched = isWatched;
      party.mayPress = pressing.includes(party.id);
      party.recordedBesideOn = recordedBeside[party.id] ?? null;
      party.isTapMuted = tapMuted.includes(party.id);
      this.#keepDtmfDetector(party);
    }
    for (const party of this.#parties.values()) this.#setSources(party, receives[party.id] ?? []);
    this.#keepPlayouts(nowMs);
    this.#paceFrames();
  }

  /** Detects tones only where telephone events are impossible, so that each press is reported once. */
  #keepDtmfDetector(party: Party): void {
    if (party.mayPress && party.leg.remote?.telephoneEventPayloadType === null) {
      party.dtmfDetector ??= new PartyDtmfDetector((digit, durationMs) =>
        this.#postKeyPress(party, digit, durationMs, 'tone'),
      );
      return;
    }
    party.dtmfDetector?.end();
    party.dtmfDetector = null;
  }

  #setSources(listener: Party, sources: LoopedSound | readonly AudioSource[]): void {
    listener.mixOf = [];
    const transcoded = listener.transcodes;
    listener.transcodes = null;
    if (typeof sources === 'string' || sources.length === 0) {
      listener.leg.setFeed(typeof sources === 'string' ? sources : 'nothing');
      return;
    }
    const [only] = sources;
    if (sources.length > 1 || (only!.gain ?? 1) !== 1) {
      listener.mixOf = sources;
      for (const { party, gain } of sources) {
        const speaker = this.#party(party);
        if (gain !== 0) speaker.mixedFor = [...speaker.mixedFor, listener];
      }
      listener.leg.setFeed('mix');
      return;
    }
    const party = this.#party(only!.party);
    party.forwardsTo = [...party.forwardsTo, listener];
    if (transcoded === party) listener.transcodes = party;
    listener.leg.setFeed(`party ${party.id}`);
  }

  /** Opens a playout for every party that is mixed or transcoded, and closes the others. */
  #keepPlayouts(nowMs: number): void {
    const played = new Set<PartyId>();
    for (const { mixOf, transcodes } of this.#parties.values()) {
      for (const { party } of mixOf) played.add(party);
      if (transcodes !== null) played.add(transcodes.id);
    }
    for (const party of this.#parties.values()) {
      const isWide = party.leg.isWideband;
      if (!played.has(party.id)) party.playout = null;
      else if (party.playout?.isWide !== isWide) party.playout = new Playout({ nowMs, isWide });
      if (party.playout !== null) party.playout.opus = party.leg.opus?.playout ?? null;
    }
  }

  /** Sets the party whose audio a listener receives transcoded; null for unchanged packets. */
  #transcode(listener: Party, speaker: Party | null): void {
    if (listener.transcodes === speaker) return;
    listener.transcodes = speaker;
    this.#keepPlayouts(this.#clock.nowMs());
    this.#paceFrames();
  }

  /** Whether a packet must take the speaker's playout. */
  #isTranscoded(speaker: Party, listener: Party, kind: PayloadKind): boolean {
    if (kind === 'comfort-noise') {
      // A peer without comfort noise receives generated noise until audio resumes.
      if (!listener.leg.takesComfortNoise) this.#transcode(listener, speaker);
      return listener.transcodes === speaker;
    }
    if (!isAudio(kind)) return false;
    const isTranscoded = listener.leg.mustTranscode(kind);
    this.#transcode(listener, isTranscoded ? speaker : null);
    return isTranscoded;
  }

  #paceFrames(): void {
    const parties = [...this.#parties.values()];
    if (parties.some((party) => party.needsFrames)) {
      this.#stopFrames ??= this.#options.pacer.add(() => this.#sendFrames());
      return;
    }
    this.#stopFrames?.();
    this.#stopFrames = null;
  }

  #sendFrames(): void {
    const nowMs = this.#clock.nowMs();
    for (const { playout } of this.#parties.values()) playout?.takeFrame(nowMs);
    for (const { leg, transcodes } of this.#parties.values()) {
      leg.sendLoop(nowMs);
      if (transcodes !== null) this.#sendPlayout(transcodes, leg, nowMs);
    }
    this.#mixer.sendFrames(this.#parties, nowMs);
  }

  #sendPlayout({ leg, playout }: Party, listener: RelayLeg, nowMs: number): void {
    const playedOutMs = leg.receivedCodec === 'OPUS' ? OPUS_PLAYED_OUT_MS : PLAYED_OUT_MS;
    const hasStopped = !leg.isPausing && nowMs - leg.lastReceivedAtMs > playedOutMs;
    if (playout === null || hasStopped) return;
    const isWide = listener.wantsWideFrames;
    listener.sendMixed(playout.frameAt(isWide), nowMs, isWide);
  }

  /** Resolves when all is sent or it was stopped. @throws RangeError if the session is closed */
  play(id: PartyId, { ifListening = false, playbackId, ...sound }: PlayedSound): Promise<SendingEnd> {
    if (ifListening && !this.#party(id).leg.isListening) return Promise.resolve('not-listening');
    const event = { type: 'playback.started', leg: id, ...(playbackId && { playbackId }) } as const;
    return this.#play(id, { ...sound, ifListening }, () => this.#options.post(event));
  }

  /** Resolves when the tone has ended for all parties. @throws RangeError if the session is closed */
  async beep(ids: readonly PartyId[]): Promise<void> {
    await Promise.all(
      ids.map((id) => this.#play(id, { samples: recordingTone(), sampleRateHz: 16_000, over: true }, () => {})),
    );
  }

  #play(id: PartyId, sound: Sound, onStarted: () => void): Promise<SendingEnd> {
    if (this.#closing !== null) throw new RangeError('the session is closed');
    const { leg } = this.#party(id);
    return this.#pacedUntilEnd(
      (nowMs) => leg.sendPlayback(nowMs),
      (onEnded) => leg.play(new Playback({ ...sound, onStarted, onEnded })),
    );
  }

  /** Sends a frame every 20 ms until `onEnded` is called. */
  #pacedUntilEnd(
    sendFrame: (nowMs: number) => void,
    start: (onEnded: (end: SendingEnd) => void) => void,
  ): Promise<SendingEnd> {
    this.#leaveFastPath();
    const { promise, resolve } = Promise.withResolvers<SendingEnd>();
    const stopPacing = this.#options.pacer.add(() => sendFrame(this.#clock.nowMs()));
    start((end) => {
      stopPacing();
      resolve(end);
    });
    return promise;
  }

  /** See `MediaSession.sendDigits`. @throws RangeError if the session is closed */
  sendDigits(id: PartyId, { digits, durationMs, yields = false }: KeyPresses): Promise<SendingEnd> {
    if (this.#closing !== null) throw new RangeError('the session is closed');
    const { leg } = this.#party(id);
    if (!leg.isListening) return Promise.resolve('not-listening');
    if (leg.remote?.telephoneEventPayloadType === null) {
      if (yields && leg.isSending) return Promise.resolve('stopped');
      return this.#play(id, { samples: dtmfTones(digits, durationMs), over: false, ifListening: 'always' }, () => {});
    }
    return this.#pacedUntilEnd(
      (nowMs) => leg.sendDigits(nowMs),
      (onEnded) => leg.press(new DigitSender({ digits, durationMs, onEnded })),
    );
  }

  stopPlaying(id: PartyId): void {
    this.#parties.get(id)?.leg.stopPlaying();
  }

  /** @throws the file system's error, after posting `recording.failed`; RangeError if a recording is running. */
  async startRecording({ filePath, channels, seal = null }: RecordingOptions): Promise<void> {
    if (this.#recorder !== null) throw new RangeError('a recording is already running');
    for (const id of Object.keys(channels)) this.#party(id);
    const isWideband = Object.keys(channels).some((id) => this.#party(id).leg.isWideband);
    const recorder = new SessionRecorder({
      filePath,
      sampleRateHz: isWideband ? 16_000 : 8000,
      seal,
      nowMs: this.#clock.nowMs(),
      onFailed: (detail) => this.#options.post({ type: 'recording.failed', detail }),
    });
    this.#setRecorder(recorder);
    for (const party of this.#parties.values()) party.recordedOn = channels[party.id] ?? null;
    try {
      await recorder.open();
    } catch (error) {
      if (this.#recorder === recorder) this.#setRecorder(null);
      throw error;
    }
  }

  #setRecorder(recorder: SessionRecorder | null): void {
    this.#leaveFastPath();
    this.#recorder = recorder;
    for (const party of this.#parties.values()) party.recorder = recorder;
  }

  /** While paused, the recording continues with silence. @throws RangeError without a recording. */
  pauseRecording(isPaused: boolean): void {
    if (this.#recorder === null) throw new RangeError('no recording is running');
    this.#leaveFastPath();
    this.#recorder.isPaused = isPaused;
  }

  /** Null without a recording, or if it failed. */
  async stopRecording(): Promise<RecordingSummary | null> {
    const recorder = this.#recorder;
    this.#setRecorder(null);
    return recorder === null ? null : recorder.stop(this.#clock.nowMs());
  }

  /** @throws RangeError if a party is unknown or tapped already, or the session is closed. */
  startTap(ports: Readonly<Record<PartyId, MessagePort>>): void {
    const parties = Object.keys(ports).map((id) => this.#party(id));
    if (parties.some(({ tap }) => tap !== null) || this.#closing !== null) {
      throw new RangeError('the session cannot be tapped');
    }
    this.#leaveFastPath();
    const nowMs = this.#clock.nowMs();
    for (const party of parties) {
      const leg = party.id;
      const onOverrun = (): void => this.#options.post({ type: 'tap.overrun', leg });
      const sampleRateHz = party.leg.isWideband ? 16_000 : 8000;
      party.tap = new LegTap({ port: ports[leg]!, sampleRateHz, nowMs, onOverrun });
    }
  }

  /** Idempotent. */
  stopTap(id: PartyId): void {
    const party = this.#parties.get(id);
    if (party === undefined) return;
    party.tap?.stop(this.#clock.nowMs());
    party.tap = null;
  }

  /**
   * Posts `machine.detected` for the audio from now on. @throws RangeError if the party is unknown or the session
   * closed.
   */
  detectMachine(id: PartyId): void {
    if (this.#closing !== null) throw new RangeError('the session is closed');
    this.#leaveFastPath();
    this.#party(id).answerDetector = new PartyAnswerDetector({
      nowMs: this.#clock.nowMs(),
      onResult: (result, afterMs) => this.#options.post({ type: 'machine.detected', leg: id, result, afterMs }),
    });
  }

  sampleQuality(): Record<PartyId, LegSample | null> {
    this.#absorbFastPath();
    return Object.fromEntries([...this.#parties].map(([id, { leg }]) => [id, leg.sampler.take()]));
  }

  quality(): Record<PartyId, LegQuality | null> {
    this.#absorbFastPath();
    return Object.fromEntries([...this.#parties].map(([id, { leg }]) => [id, leg.quality()]));
  }

  /** Makes `tick` post levels and quality, or stops that. */
  setMeasured(isMeasured: boolean): void {
    if (isMeasured === (this.#ticksMeasured !== null)) return;
    this.#ticksMeasured = isMeasured ? 0 : null;
    this.#leaveFastPath();
    for (const party of this.#parties.values()) party.meter = isMeasured ? new LevelMeter() : null;
  }

  /**
   * Periodic work every `SESSION_TICK_MS`: flushes the recording, posts reports and detects silent parties.
   * @param readUntilMs packets that arrived until then were read; later ones may wait in the sockets after a stall
   */
  tick(readUntilMs = this.#clock.nowMs()): void {
    if (this.#closing !== null) return;
    this.#absorbFastPath();
    const nowMs = this.#clock.nowMs();
    this.#tickedAtMs = nowMs;
    this.#recorder?.flush(readUntilMs);
    const unixMs = this.#clock.unixMs();
    for (const party of this.#parties.values()) {
      party.keyPressesThisTick = 0;
      party.tap?.flush(readUntilMs);
      party.answerDetector?.judge(nowMs, readUntilMs);
      if (party.answerDetector?.isOver) party.answerDetector = null;
      party.dtmfDetector?.judge(readUntilMs);
      party.keyPresses.judge(readUntilMs);
      party.leg.sendDueRtcp(nowMs, unixMs);
      this.#checkSilence(party, nowMs);
    }
    this.#postMeasurements();
  }

  #postMeasurements(): void {
    if (this.#ticksMeasured === null) return;
    this.#ticksMeasured += 1;
    if (this.#ticksMeasured % TICKS_PER_LEVEL === 0) {
      const levels: Record<PartyId, PartyLevel> = {};
      for (const { id, meter } of this.#parties.values()) if (meter !== null) levels[id] = meter.read();
      this.#options.post({ type: 'levels.measured', levels });
    }
    if (this.#ticksMeasured % TICKS_PER_QUALITY === 0) {
      this.#options.post({ type: 'quality.measured', quality: this.quality() });
    }
  }

  /** Resolves with the summary of a recording once it is finished and the ports are free. Idempotent. */
  close(): Promise<RecordingSummary | null> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /**
   * Entry of every datagram. Hundreds of calls share this thread, so an exception must cost only the datagram. `dump`
   * reports it.
   */
  receiveRtp(id: PartyId, datagram: Buffer, source: Endpoint): void {
    const party = this.#parties.get(id);
    if (party === undefined) return;
    try {
      this.#receiveRtp(party, datagram, source);
    } catch (error) {
      this.#noteFault(error);
    }
  }

  receiveRtcp(id: PartyId, datagram: Buffer, source: Endpoint): void {
    const party = this.#parties.get(id);
    if (party === undefined) return;
    try {
      party.leg.receiveRtcp(datagram, source, this.#clock.nowMs(), this.#clock.unixMs());
    } catch (error) {
      this.#noteFault(error);
    }
  }

  #noteFault(error: unknown): void {
    this.#faults.count += 1;
    this.#faults.last = error instanceof Error ? error.message : String(error);
  }

  #receiveRtp(party: Party, datagram: Buffer, source: Endpoint): void {
    const { leg } = party;
    const header = this.#header;
    const { fastPath } = this.#options;
    const nowMs = this.#clock.nowMs();
    // After a stall, kept audio of the other parties is older than what the recorder can still place.
    if (nowMs - this.#tickedAtMs > LONGEST_WITHOUT_TICK_MS) this.#absorbFastPath();
    else fastPath.absorb(party);
    const bytes = leg.openRtp(datagram, source);
    if (bytes < 0) return;
    if (!parseRtp(datagram, header, bytes)) {
      leg.counters.malformed += 1;
      return;
    }
    const kind = leg.payloadKindOf(header);
    if (kind === 'unknown') {
      leg.counters.refusedPayload += 1;
      return;
    }
    const verdict = leg.latch.judge(source, header, nowMs);
    if (verdict === 'refused') {
      leg.counters.refusedSource += 1;
      return;
    }
    if (verdict === 'latched') this.#leaveFastPath();
    else fastPath.leave(party);
    if (!party.allowance.take(nowMs)) {
      leg.counters.flooded += 1;
      return;
    }
    const { forwardsTo } = party;
    const last = forwardsTo.length - 1;
    const packet = this.#packet;
    packet.datagram = datagram;
    packet.kind = kind;
    packet.nowMs = nowMs;
    for (let i = 0; i <= last; i++) {
      const listener = forwardsTo[i]!;
      if (this.#isTranscoded(party, listener, kind)) {
        listener.leg.outbound.skip(header);
        continue;
      }
      packet.isLast = i === last;
      listener.leg.forward(leg, packet);
    }
    if (kind === 'telephone-event') {
      packet.isLast = false;
      for (const listener of party.mixedFor) listener.leg.forward(leg, packet);
    }
    this.#account(party, datagram, kind, nowMs);
    fastPath.enter(party, header, kind);
  }

  dump(): unknown {
    this.#absorbFastPath();
    return {
      parties: Object.fromEntries([...this.#parties].map(([id, party]) => [id, party.dump()])),
      recording: this.#recorder?.dump() ?? null,
      faults: { ...this.#faults },
    };
  }

  /** Updates statistics, recorder and taps. The packet was already relayed. */
  #account(party: Party, datagram: Buffer, kind: PayloadKind, nowMs: number): void {
    const header = this.#header;
    const { leg } = party;
    if (leg.lastReceivedAtMs < 0) this.#options.post({ type: 'rtp.started', leg: party.id });
    leg.lastReceivedAtMs = nowMs;
    party.isTimedOut = false;
    const hasAudio = isAudio(kind);
    if (hasAudio) leg.reception.setClock(CODECS[kind].clockHz);
    leg.reception.count(header.ssrc, header.sequence, header.timestamp, nowMs, hasAudio);
    if (kind === 'telephone-event') this.#detectKeyPress(party, datagram, nowMs);
    if (hasAudio || kind === 'comfort-noise') {
      leg.isPausing = !hasAudio || (kind === 'OPUS' && isOpusPause(header.payloadBytes));
    }
    if (kind === 'comfort-noise') {
      party.playout?.addComfortNoise(datagram, header, nowMs);
      party.dtmfDetector?.end();
    }
    if (!isAudio(kind) || header.payloadBytes === 0) return;
    leg.receivedCodec = kind;
    // After a change to a wideband codec. The other way round, a wide playout stays, in case the codecs alternate.
    if (party.playout?.isWide === false && leg.isWideband) this.#keepPlayouts(nowMs);
    party.addAudio(kind, datagram, header, nowMs);
  }

  #detectKeyPress(party: Party, datagram: Buffer, nowMs: number): void {
    const header = this.#header;
    if (!parseTelephoneEvent(datagram, header.payloadOffset, header.payloadBytes, this.#event)) return;
    party.keyPresses.add(header.ssrc, header.timestamp, this.#event, party.leg.eventClockHz, nowMs);
  }

  #postKeyPress(party: Party, digit: string, durationMs: number, by?: 'tone'): void {
    if (party.keyPressesThisTick++ >= MOST_KEY_PRESSES_PER_TICK) return;
    this.#options.post({ type: 'dtmf.pressed', leg: party.id, digit, durationMs, ...(by !== undefined && { by }) });
    // Tones pass as audio.
    if (by === undefined)
      for (const listener of [...party.forwardsTo, ...party.mixedFor]) this.#playKeyPress(listener, digit);
  }

  /** Plays a key press of another party to a peer without telephone events, after earlier ones. */
  #playKeyPress({ id, leg }: Party, digit: string): void {
    const play = async (): Promise<void> => {
      if (this.#closing !== null || leg.remote?.telephoneEventPayloadType !== null) return;
      await this.sendDigits(id, { digits: digit, durationMs: KEY_TONE_MS, yields: true });
    };
    if (this.#keyTones.outlook(id) === 'full') return;
    this.#keyTones.run(play, { lane: id }).catch((error) => this.#noteFault(error));
  }

  #checkSilence(party: Party, nowMs: number): void {
    const { leg } = party;
    if (!party.isWatched || !leg.isExpectedToSpeak || party.isTimedOut) return;
    const silentForMs = Math.round(nowMs - Math.max(leg.lastSeenAtMs, party.expectedSinceMs));
    if (silentForMs < this.#options.rtpTimeoutMs) return;
    party.isTimedOut = true;
    this.#options.fastPath.leave(party);
    this.#options.post({ type: 'rtp.timeout', leg: party.id, silentForMs });
  }

  #absorbFastPath(): void {
    for (const party of this.#parties.values()) this.#options.fastPath.absorb(party);
  }

  /** Before any change of what parties send, receive or need. Each enters again with its next packet if it still may. */
  #leaveFastPath(): void {
    for (const party of this.#parties.values()) this.#options.fastPath.leave(party);
  }

  #party(id: PartyId): Party {
    const party = this.#parties.get(id);
    if (party === undefined) throw new RangeError(`the session has no party ${id}`);
    return party;
  }

  async #close(): Promise<RecordingSummary | null> {
    this.#leaveFastPath();
    this.#stopFrames?.();
    this.#stopFrames = null;
    for (const id of this.#parties.keys()) this.stopTap(id);
    const nowMs = this.#clock.nowMs();
    const unixMs = this.#clock.unixMs();
    const parties = [...this.#parties.values()];
    const [recording] = await Promise.all([
      this.stopRecording(),
      ...parties.map(({ leg }) => leg.close(nowMs, unixMs)),
    ]);
    return recording;
  }
}

type Sound = Omit<PlaybackOptions, 'onStarted' | 'onEnded'>;

function isAudio(kind: PayloadKind): kind is Codec {
  return kind in CODECS;
}

function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 0 && port <= 65_535;
}
