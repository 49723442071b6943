import type { MessagePort } from 'node:worker_threads';
import type { LegName, LegQuality, MediaEvent, RemoteMedia } from '../../machines/events.ts';
import type { DatagramSocket, Datagrams } from '../datagrams/datagrams.ts';
import { Endpoint } from '../datagrams/endpoint.ts';
import { meanPowerOfG711 } from '../dsp/level.ts';
import type { MediaPath, PlaybackEnd, PlayedSound, RecordingSummary } from '../media-plane.ts';
import { SessionRecorder } from '../recording/session-recorder.ts';
import { emptyRtpHeader, parseRtp, type RtpHeader } from '../rtp/packet.ts';
import { digitOfEvent, emptyTelephoneEvent, parseTelephoneEvent } from '../rtp/telephone-event.ts';
import { type FramePacer, systemPacerClock } from './frame-pacer.ts';
import { type PayloadKind, RelayLeg } from './leg.ts';
import { LegTap } from './leg-tap.ts';
import { isOwnAddress, resolveHost } from './peer-address.ts';
import { Playback } from './playback.ts';
import type { SendRing } from './send-ring.ts';

/** The two legs of a call and what goes on between them. Lives in a worker thread; `tick` drives all that is not a packet. */

/** How often `tick` wants to be called. */
export const SESSION_TICK_MS = 250;
/** Packets per leg and tick that are worked on: twenty times what a call needs, and an end to loops and floods. */
const MOST_PACKETS_PER_TICK = 250;
const MOST_KEY_PRESSES_PER_TICK = 10;

interface RelayClock {
  /** Monotonic. */
  nowMs(): number;
  /** Wall clock, for RTCP. */
  unixMs(): number;
}

const systemRelayClock: RelayClock = { nowMs: systemPacerClock.nowMs, unixMs: () => Date.now() };

interface RelaySessionOptions {
  /** The literal address that sockets are bound to. */
  bindHost: string;
  /** Even RTP ports; RTCP is one above. */
  rtpPorts: Record<LegName, number>;
  rtpTimeoutMs: number;
  /** These three are shared by the sessions of a thread. */
  datagrams: Datagrams;
  pacer: FramePacer;
  sendRing: SendRing;
  clock?: RelayClock;
  post: (event: MediaEvent) => void;
}

/** A port pair of the session cannot be bound: somebody else has it. */
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

/** The peer's address is not one that we may send to. */
export class RemoteAddressError extends Error {
  override readonly name = 'RemoteAddressError';
  readonly code = 'REMOTE_ADDRESS';
  readonly retryable = false;
}

export class RelaySession {
  readonly #options: RelaySessionOptions;
  readonly #clock: RelayClock;
  readonly #legs: Record<LegName, RelayLeg>;
  readonly #header: RtpHeader = emptyRtpHeader();
  readonly #event = emptyTelephoneEvent();
  readonly #expectedSinceMs: Record<LegName, number> = { agent: 0, customer: 0 };
  readonly #isTimedOut: Record<LegName, boolean> = { agent: false, customer: false };
  readonly #packetsThisTick: Record<LegName, number> = { agent: 0, customer: 0 };
  readonly #keyPressesThisTick: Record<LegName, number> = { agent: 0, customer: 0 };
  readonly #faults: { count: number; last: string | null } = { count: 0, last: null };
  #path: MediaPath = 'idle';
  #stopRingback: (() => void) | null = null;
  #recorder: SessionRecorder | null = null;
  #taps: Record<LegName, LegTap> | null = null;
  #closing: Promise<RecordingSummary | null> | null = null;

  private constructor(options: RelaySessionOptions, legs: Record<LegName, RelayLeg>) {
    this.#options = options;
    this.#clock = options.clock ?? systemRelayClock;
    this.#legs = legs;
  }

  /** @throws PortTakenError naming the pair; no socket stays open. */
  static async open(options: RelaySessionOptions): Promise<RelaySession> {
    const { datagrams, bindHost } = options;
    let session: RelaySession | null = null;
    const opened: DatagramSocket[] = [];
    const nowMs = (options.clock ?? systemRelayClock).nowMs();
    const openLeg = async (name: LegName): Promise<RelayLeg> => {
      const rtpPort = options.rtpPorts[name];
      try {
        const rtpSocket = await datagrams.bind({
          host: bindHost,
          port: rtpPort,
          receive: (datagram, source) => session?.receiveRtp(name, datagram, source),
        });
        opened.push(rtpSocket);
        const rtcpSocket = await datagrams.bind({
          host: bindHost,
          port: rtpPort + 1,
          receive: (datagram, source) => session?.receiveRtcp(name, datagram, source),
        });
        opened.push(rtcpSocket);
        return new RelayLeg({ name, rtpSocket, rtcpSocket, sendRing: options.sendRing, nowMs });
      } catch (error) {
        throw new PortTakenError(rtpPort, error);
      }
    };
    try {
      const agent = await openLeg('agent');
      const customer = await openLeg('customer');
      session = new RelaySession(options, { agent, customer });
      return session;
    } catch (error) {
      await Promise.all(opened.map((socket) => socket.close()));
      throw error;
    }
  }

  /**
   * Sets or replaces where a leg's RTP goes.
   * @throws RemoteAddressError when the host has no address of our family, the port is none, or this session's own.
   */
  async connectLeg(name: LegName, remote: RemoteMedia): Promise<void> {
    // Sending to a port that is none throws; a packet on its way is no place for that.
    if (!isPort(remote.rtpPort)) throw new RemoteAddressError('the media port of the peer is invalid');
    const address = await resolveHost(remote.host, this.#options.bindHost).catch((cause: unknown) => {
      throw new RemoteAddressError('the media address of the peer cannot be resolved', { cause });
    });
    // Two legs whose SDPs name each other's ports of ours would relay one packet for ever.
    const isOwnPort = Object.values(this.#options.rtpPorts).some((port) => (remote.rtpPort & ~1) === port);
    if (isOwnPort && isOwnAddress(address, this.#options.bindHost)) {
      throw new RemoteAddressError('the media address of the peer is our own');
    }
    if (this.#closing !== null) return;
    const leg = this.#legs[name];
    const nowMs = this.#clock.nowMs();
    if (!leg.isExpectedToSpeak) this.#expectedSinceMs[name] = nowMs;
    leg.connect(
      isPort(remote.rtcpPort) ? remote : { ...remote, rtcpPort: 0 },
      Endpoint.of(address, remote.rtpPort),
      nowMs,
    );
  }

  setPath(path: MediaPath): void {
    if (this.#closing !== null) return;
    if (path === 'bridged' && this.#path !== 'bridged') {
      const nowMs = this.#clock.nowMs();
      this.#expectedSinceMs.agent = nowMs;
      this.#expectedSinceMs.customer = nowMs;
    }
    this.#path = path;
    const { agent, customer } = this.#legs;
    agent.stopPlaying();
    customer.stopPlaying();
    if (path === 'ringback') agent.hear('ringback');
    else agent.hear(path === 'idle' ? 'nothing' : 'other-leg');
    customer.hear(path === 'bridged' ? 'other-leg' : 'nothing');
    if (path !== 'ringback') {
      this.#stopRingback?.();
      this.#stopRingback = null;
      return;
    }
    this.#stopRingback ??= this.#options.pacer.add(() => agent.sendRingback(this.#clock.nowMs()));
  }

  /** Resolves when all is sent, or it was stopped. @throws RangeError when the session is closed */
  play(name: LegName, { samples, over }: PlayedSound): Promise<PlaybackEnd> {
    if (this.#closing !== null) throw new RangeError('the session is closed');
    const { promise, resolve } = Promise.withResolvers<PlaybackEnd>();
    const leg = this.#legs[name];
    const stopPacing = this.#options.pacer.add(() => leg.sendPlayback(this.#clock.nowMs()));
    leg.play(
      new Playback({
        samples,
        over,
        onStarted: () => this.#options.post({ type: 'playback.started', leg: name }),
        onEnded: (end) => {
          stopPacing();
          resolve(end);
        },
      }),
    );
    return promise;
  }

  /** @throws the file system's error, after posting `recording.failed`; RangeError when one is running. */
  async startRecording(filePath: string): Promise<void> {
    if (this.#recorder !== null) throw new RangeError('a recording is already running');
    const recorder = new SessionRecorder({
      filePath,
      nowMs: this.#clock.nowMs(),
      onFailed: (detail) => this.#options.post({ type: 'recording.failed', detail }),
    });
    this.#recorder = recorder;
    try {
      await recorder.open();
    } catch (error) {
      if (this.#recorder === recorder) this.#recorder = null;
      throw error;
    }
  }

  /** Null when there is no recording, or it failed. */
  async stopRecording(): Promise<RecordingSummary | null> {
    const recorder = this.#recorder;
    this.#recorder = null;
    return recorder === null ? null : recorder.stop(this.#clock.nowMs());
  }

  /** @throws RangeError when the session is tapped or closed. */
  startTap(ports: Record<LegName, MessagePort>): void {
    if (this.#taps !== null || this.#closing !== null) throw new RangeError('the session cannot be tapped');
    const nowMs = this.#clock.nowMs();
    const tap = (leg: LegName): LegTap =>
      new LegTap({ port: ports[leg], nowMs, onOverrun: () => this.#options.post({ type: 'tap.overrun', leg }) });
    this.#taps = { agent: tap('agent'), customer: tap('customer') };
  }

  /** Idempotent. */
  stopTap(): void {
    const nowMs = this.#clock.nowMs();
    this.#taps?.agent.stop(nowMs);
    this.#taps?.customer.stop(nowMs);
    this.#taps = null;
  }

  quality(): Record<LegName, LegQuality | null> {
    return { agent: this.#legs.agent.quality(), customer: this.#legs.customer.quality() };
  }

  /** Writes what can be written, reports, and looks who fell silent. Every `SESSION_TICK_MS`. */
  tick(): void {
    if (this.#closing !== null) return;
    const nowMs = this.#clock.nowMs();
    this.#recorder?.flush(nowMs);
    for (const name of LEG_NAMES) {
      this.#packetsThisTick[name] = 0;
      this.#keyPressesThisTick[name] = 0;
      this.#taps?.[name].flush(nowMs);
      this.#legs[name].sendDueRtcp(nowMs, this.#clock.unixMs());
      this.#checkSilence(name, nowMs);
    }
  }

  /** Idempotent. Resolves when the ports are free and a recording is finished, with the recording's summary. */
  close(): Promise<RecordingSummary | null> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  /**
   * Entry of every datagram. Hundreds of calls share this thread: should a datagram find a fault that no test found,
   * it costs that datagram, and `dump` tells.
   */
  receiveRtp(name: LegName, datagram: Buffer, source: Endpoint): void {
    try {
      this.#receiveRtp(name, datagram, source);
    } catch (error) {
      this.#noteFault(error);
    }
  }

  receiveRtcp(name: LegName, datagram: Buffer, source: Endpoint): void {
    try {
      this.#legs[name].receiveRtcp(datagram, source, this.#clock.nowMs(), this.#clock.unixMs());
    } catch (error) {
      this.#noteFault(error);
    }
  }

  #noteFault(error: unknown): void {
    this.#faults.count += 1;
    this.#faults.last = error instanceof Error ? error.message : String(error);
  }

  #receiveRtp(name: LegName, datagram: Buffer, source: Endpoint): void {
    const leg = this.#legs[name];
    const header = this.#header;
    if (!parseRtp(datagram, header)) {
      leg.counters.malformed += 1;
      return;
    }
    const kind = leg.payloadKindOf(header);
    if (kind === 'unknown') {
      leg.counters.refusedPayload += 1;
      return;
    }
    const nowMs = this.#clock.nowMs();
    if (leg.latch.judge(source, header, nowMs) === 'refused') {
      leg.counters.refusedSource += 1;
      return;
    }
    if (this.#packetsThisTick[name]++ >= MOST_PACKETS_PER_TICK) {
      leg.counters.flooded += 1;
      return;
    }
    const other = name === 'agent' ? this.#legs.customer : this.#legs.agent;
    if (other.feed === 'other-leg') other.forward(datagram, header, kind, nowMs);
    this.#account(leg, datagram, kind, nowMs);
  }

  dump(): unknown {
    return {
      path: this.#path,
      agent: this.#legs.agent.dump(),
      customer: this.#legs.customer.dump(),
      recording: this.#recorder?.dump() ?? null,
      taps: this.#taps && { agent: this.#taps.agent.dump(), customer: this.#taps.customer.dump() },
      faults: { ...this.#faults },
    };
  }

  /** All that a packet means to us; it is on its way already. */
  #account(leg: RelayLeg, datagram: Buffer, kind: PayloadKind, nowMs: number): void {
    const header = this.#header;
    const { name } = leg;
    if (leg.lastHeardAtMs < 0) this.#options.post({ type: 'rtp.started', leg: name });
    leg.lastHeardAtMs = nowMs;
    this.#isTimedOut[name] = false;
    const isAudio = kind === 'PCMU' || kind === 'PCMA';
    leg.reception.count(header.ssrc, header.sequence, header.timestamp, nowMs, isAudio);
    if (kind === 'telephone-event') this.#detectKeyPress(leg, datagram);
    if (!isAudio || header.payloadBytes === 0) return;
    leg.heardCodec = kind;
    const power = meanPowerOfG711(kind, datagram, header.payloadOffset, header.payloadOffset + header.payloadBytes);
    leg.snr.addFrame(power);
    this.#recorder?.addAudio(name === 'agent' ? 0 : 1, kind, datagram, header, power, nowMs);
    this.#taps?.[name].addAudio(kind, datagram, header, power, nowMs);
  }

  #detectKeyPress(leg: RelayLeg, datagram: Buffer): void {
    const header = this.#header;
    if (!parseTelephoneEvent(datagram, header.payloadOffset, header.payloadBytes, this.#event)) return;
    const durationMs = leg.keyPresses.pressedForMs(header.ssrc, header.timestamp, this.#event);
    const digit = digitOfEvent(this.#event.event);
    if (durationMs < 0 || digit === null) return;
    if (this.#keyPressesThisTick[leg.name]++ >= MOST_KEY_PRESSES_PER_TICK) return;
    this.#options.post({ type: 'dtmf.pressed', leg: leg.name, digit, durationMs });
  }

  #checkSilence(name: LegName, nowMs: number): void {
    const leg = this.#legs[name];
    if (this.#path !== 'bridged' || !leg.isExpectedToSpeak || this.#isTimedOut[name]) return;
    const silentForMs = Math.round(nowMs - Math.max(leg.lastHeardAtMs, this.#expectedSinceMs[name]));
    if (silentForMs < this.#options.rtpTimeoutMs) return;
    this.#isTimedOut[name] = true;
    this.#options.post({ type: 'rtp.timeout', leg: name, silentForMs });
  }

  async #close(): Promise<RecordingSummary | null> {
    this.#stopRingback?.();
    this.#stopRingback = null;
    this.stopTap();
    const nowMs = this.#clock.nowMs();
    const unixMs = this.#clock.unixMs();
    const [recording] = await Promise.all([
      this.stopRecording(),
      this.#legs.agent.close(nowMs, unixMs),
      this.#legs.customer.close(nowMs, unixMs),
    ]);
    return recording;
  }
}

const LEG_NAMES: readonly LegName[] = ['agent', 'customer'];

function isPort(port: number): boolean {
  return Number.isInteger(port) && port >= 0 && port <= 65_535;
}
