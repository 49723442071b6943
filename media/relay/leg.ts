import { randomBytes } from 'node:crypto';
import { CODECS, type Codec, type LegQuality, type RemoteMedia } from '../../machines/events.ts';
import { type G711Codec, MULAW_TO_LINEAR, transcodingTable } from '../codecs/g711.ts';
import { isOpusPause, opusTicks } from '../codecs/opus.ts';
import type { DatagramSocket } from '../datagrams/datagrams.ts';
import { Endpoint } from '../datagrams/endpoint.ts';
import { holdMusicFrames } from '../dsp/hold-music.ts';
import { FULL_SCALE_POWER, meanPower, powerToDbov } from '../dsp/level.ts';
import { estimateMos } from '../dsp/mos.ts';
import { SnrEstimator } from '../dsp/snr.ts';
import { FRAME_SAMPLES, ringbackFrames, silenceFrames } from '../dsp/tones.ts';
import type { LoopedSound, PlaybackEnd, SendingEnd } from '../media-plane.ts';
import type { PacketAudio } from '../recording/timeline.ts';
import { COMFORT_NOISE_PAYLOAD_TYPE } from '../rtp/comfort-noise.ts';
import { RTP_HEADER_BYTES, type RtpHeader, writeRtpHeader } from '../rtp/packet.ts';
import { ReceiverStatistics } from '../rtp/receiver-statistics.ts';
import { scaleEventDuration, TELEPHONE_EVENT_BYTES, writeTelephoneEvent } from '../rtp/telephone-event.ts';
import { MOST_SRTP_OVERHEAD_BYTES } from '../srtp/crypto-suites.ts';
import { LegSrtp } from '../srtp/leg-srtp.ts';
import type { DigitSender } from './digit-sender.ts';
import { closeLegOpus, type LegOpus, openLegOpus } from './leg-opus.ts';
import { OutboundStream, type RelayedPackets } from './outbound-stream.ts';
import { PacketDecoder } from './packet-decoder.ts';
import { PacketEncoder } from './packet-encoder.ts';
import type { Playback } from './playback.ts';
import { QualitySampler } from './quality-sampler.ts';
import { RtcpReporter } from './rtcp-reporter.ts';
import type { SendRing } from './send-ring.ts';
import { SourceLatch } from './source-latch.ts';

/** Kind of a payload, independent of its payload type number. */
export type PayloadKind = Codec | 'telephone-event' | 'comfort-noise' | 'unknown';

/** Source of a leg's audio: nothing, a looped sound, the packets of one party, or a mix. */
type LegFeed = 'nothing' | LoopedSound | 'mix' | `party ${string}`;

/** After this gap the other party counts as silent, and a sound over its audio continues alone. */
const OTHER_PARTY_PAUSE_MS = 100;
/** Five packets a second. */
const FRAMES_PER_COMFORT_NOISE = 10;
/** -127 dBov. */
const QUIETEST_COMFORT_NOISE = 127;
/** Mean square, -62 dBov. Quieter frames become comfort noise if the peer supports it. */
const PAUSE_POWER = FULL_SCALE_POWER * 10 ** -6.2;
/** Quiet frames before comfort noise: 200 ms, longer than pauses within words. */
const FRAMES_BEFORE_PAUSE = 10;
/** Longer than the 20 ms or 50 ms between two packets of an event. */
const EVENT_PAUSE_MS = 80;
/** 180 ms of G.711, more than any sender packs. It fits into a recording slot and a send slot. */
export const MOST_PAYLOAD_BYTES = 1440;

const LOOP_FRAMES: Readonly<Record<LoopedSound, (codec: G711Codec) => readonly Uint8Array[]>> = {
  ringback: ringbackFrames,
  'hold-music': holdMusicFrames,
  silence: silenceFrames,
};

/** Input of the encoder, shared by the legs of a thread. */
const scratch = new Int16Array(2 * MOST_PAYLOAD_BYTES);

/** A packet for a listener. The object may be reused. */
export interface ForwardedPacket {
  datagram: Buffer;
  header: RtpHeader;
  kind: PayloadKind;
  nowMs: number;
  /** Whether no other listener needs the datagram's header. */
  isLast: boolean;
}

interface RelayLegOptions {
  rtpSocket: DatagramSocket;
  rtcpSocket: DatagramSocket;
  sendRing: SendRing;
  nowMs: number;
}

/** The RTP endpoint of a party: its two sockets, the state of its stream, and our one stream to it. */
export class RelayLeg {
  readonly latch = new SourceLatch();
  readonly outbound: OutboundStream;
  readonly reception = new ReceiverStatistics();
  readonly snr = new SnrEstimator();
  readonly rtcp: RtcpReporter;
  readonly sampler: QualitySampler;
  readonly counters = { malformed: 0, refusedSource: 0, refusedPayload: 0, flooded: 0, heldBack: 0 };
  remote: RemoteMedia | null = null;
  feed: LegFeed = 'nothing';
  /** -1 before the first accepted packet. */
  lastReceivedAtMs = -1;
  /** Time of the peer's last RTCP; -1 before. */
  lastReportAtMs = -1;
  /** The peer announced a pause by comfort noise and has sent no audio since. */
  isPausing = false;
  /** Codec of the last received audio; null before. */
  receivedCodec: Codec | null = null;
  readonly #rtpSocket: DatagramSocket;
  readonly #rtcpSocket: DatagramSocket;
  readonly #sendRing: SendRing;
  /** RTP destination from the SDP; unspecified before an SDP arrived. */
  readonly #signalled = new Endpoint();
  /** RTCP destination. Its address is used only until a source is latched. */
  readonly #rtcpTarget = new Endpoint();
  #loopFrame = 0;
  /** Consecutive quiet frames of a mix or playout. */
  #quietFrames = 0;
  #playback: Playback | null = null;
  #digits: DigitSender | null = null;
  #forwardedAtMs = Number.NEGATIVE_INFINITY;
  #eventAtMs = Number.NEGATIVE_INFINITY;
  /** The party that sent the last event. */
  #presser: RelayLeg | null = null;
  #isClosed = false;
  /** Created when audio must first be transcoded, mixed or decoded. */
  #decoder: PacketDecoder | null = null;
  #encoder: PacketEncoder | null = null;
  /** Null until Opus is negotiated. */
  opus: LegOpus | null = null;
  #openingOpus: Promise<LegOpus> | null = null;
  /** The last Opus frame belonged to a pause. */
  #isOpusPausing = false;
  /** Kept while the peer sends plain RTP: its keys may return, and must not restart. */
  #srtp: LegSrtp | null = null;
  readonly #fields = { payloadType: 0, sequence: 0, timestamp: 0, ssrc: 0, marker: false };

  constructor(options: RelayLegOptions) {
    this.#rtpSocket = options.rtpSocket;
    this.#rtcpSocket = options.rtcpSocket;
    this.#sendRing = options.sendRing;
    // RFC 3550 §5.1: random SSRC, sequence number and timestamp. RFC 3711 §3.3.1: start in the lower half of the
    // sequence numbers, so that early losses cannot hide a rollover.
    const seed = randomBytes(10);
    this.outbound = new OutboundStream({
      ssrc: seed.readUInt32BE(0),
      timestamp: seed.readUInt32BE(4),
      sequence: seed.readUInt16BE(8) & 0x7fff,
    });
    this.rtcp = new RtcpReporter({ outbound: this.outbound, reception: this.reception, nowMs: options.nowMs });
    this.sampler = new QualitySampler(this);
  }

  /** Whether the peer is connected, receives media (RFC 3264 §6.1) and gave a port. */
  get isListening(): boolean {
    const direction = this.remote?.direction;
    return (
      !this.#signalled.isUnspecified &&
      this.#signalled.port !== 0 &&
      (direction === 'sendrecv' || direction === 'recvonly')
    );
  }

  /** Null if the sockets do not ask a forwarder. */
  get rtpSocketId(): number | null {
    return this.#rtpSocket.forwardId;
  }

  /** The latched source, or else the address of the SDP. */
  get rtpTarget(): Endpoint {
    return this.latch.isLatched ? this.latch.source : this.#signalled;
  }

  get isEncrypted(): boolean {
    return this.#activeSrtp !== null;
  }

  /** Whether we send a sound or digits. */
  get isSending(): boolean {
    return this.#playback !== null || this.#digits !== null;
  }

  /** Whether the peer receives packets of the codec unchanged but for their header, and nothing else. */
  receivesPlain(codec: PayloadKind): boolean {
    return this.isListening && !this.isSending && !this.isEncrypted && !this.#isClosed && this.remote?.codec === codec;
  }

  /** Counts packets that were sent without `forward`. */
  noteRelayed(packets: RelayedPackets): void {
    this.outbound.addInOrder(packets);
    this.#forwardedAtMs = packets.nowMs;
  }

  /** Whether the peer uses a 16 kHz codec, according to its audio or SDP. */
  get isWideband(): boolean {
    const codec = this.#usedCodec;
    return codec !== undefined && CODECS[codec].sampleRateHz === 16_000;
  }

  /** Clock of its timestamps, according to its audio or SDP. */
  get clockHz(): number | undefined {
    const codec = this.#usedCodec;
    return codec && CODECS[codec].clockHz;
  }

  get #usedCodec(): Codec | undefined {
    return this.receivedCodec ?? this.remote?.codec;
  }

  /** Time of the last sign of life. A pausing peer sends RTCP but no audio (RFC 3389 §4). */
  get lastSeenAtMs(): number {
    return this.isPausing ? Math.max(this.lastReceivedAtMs, this.lastReportAtMs) : this.lastReceivedAtMs;
  }

  /** Whether silence of the peer is a fault. On hold it may send nothing, or only music. */
  get isExpectedToSpeak(): boolean {
    return this.remote?.direction === 'sendrecv';
  }

  connect(remote: RemoteMedia, signalled: Endpoint, nowMs: number): void {
    const wasListening = this.isListening;
    if (remote.srtp !== undefined) {
      if (this.#srtp === null) this.#srtp = new LegSrtp(remote.srtp, this.outbound.ssrc);
      else this.#srtp.rekey(remote.srtp);
    }
    this.remote = remote;
    this.outbound.setClock(CODECS[remote.codec].clockHz);
    if (this.opus !== null) this.opus.encoder.dtx = remote.usesDtx === true;
    if (remote.expectedSsrc !== undefined) this.outbound.ssrc = remote.expectedSsrc;
    if (!signalled.equals(this.#signalled) || this.#rtcpTarget.port === 0) {
      this.#rtcpTarget.port = remote.rtcpPort;
    }
    this.#signalled.copy(signalled);
    this.latch.expect(signalled, nowMs);
    if (this.isListening !== wasListening) this.outbound.switchSource();
  }

  /** Decrypts a datagram in place. Returns the length of its RTP packet; -1 if it is not authentic or was replayed. */
  openRtp(datagram: Buffer, source: Endpoint): number {
    const srtp = this.#activeSrtp;
    if (srtp === null) return datagram.length;
    return srtp.openRtp(datagram, source.equals(this.rtpTarget));
  }

  setFeed(feed: LegFeed): void {
    if (feed === this.feed) return;
    this.feed = feed;
    this.#loopFrame = 0;
    this.outbound.switchSource();
  }

  /** Starts a playback, paced by `sendPlayback`. Stops the previous one. */
  play(playback: Playback): void {
    this.#endPlayback('stopped');
    this.#playback = playback;
    if (!playback.over) this.outbound.switchSource();
  }

  /** Sends key presses instead of all other audio, paced by `sendDigits`. Stops earlier ones. */
  press(digits: DigitSender): void {
    this.#endDigits('stopped');
    this.#digits = digits;
  }

  stopPlaying(): void {
    this.#endPlayback('stopped');
  }

  /** Kind of a packet from this leg. The peer may use any offered codec at any time (RFC 3264 §5.1). */
  payloadKindOf(header: RtpHeader): PayloadKind {
    if (header.payloadBytes > MOST_PAYLOAD_BYTES) return 'unknown';
    const { payloadType } = header;
    const { remote } = this;
    if (remote !== null && payloadType === remote.payloadType) return remote.codec;
    // The peer may receive Opus under its own number and send it under ours (RFC 3264 §6.1).
    const isOffered = payloadType === CODECS.OPUS.payloadType && payloadType !== remote?.telephoneEventPayloadType;
    if (isOffered && remote?.codec === 'OPUS') return 'OPUS';
    if (payloadType === 0) return 'PCMU';
    if (payloadType === 8) return 'PCMA';
    if (payloadType === 9) return 'G722';
    if (payloadType === COMFORT_NOISE_PAYLOAD_TYPE) return 'comfort-noise';
    // Some peers ignore the negotiated type. Four bytes with a dynamic type are an event.
    if (payloadType >= 96 && header.payloadBytes === 4) return 'telephone-event';
    return 'unknown';
  }

  /** Whether audio must be decoded for this peer. Between the two laws of G.711, `forward` only needs a table. */
  mustTranscode(kind: Codec): boolean {
    const codec = this.remote?.codec ?? kind;
    // A sound cannot be mixed into a single Opus packet, because Opus is stateful.
    if (kind === codec) return codec === 'OPUS' && this.#playback?.over === true;
    return !(isG711(kind) && isG711(codec));
  }

  /**
   * Sends a packet of another party to this one, unless it must be transcoded. For the last listener with the same
   * codec, the header is rewritten in the datagram; otherwise the payload is copied. The payload in the datagram never
   * changes.
   */
  forward(speaker: RelayLeg, { datagram, header, kind, nowMs, isLast }: ForwardedPacket): void {
    const remote = this.remote;
    const playback = this.#playback;
    if (remote === null || !this.isListening || playback?.over === false || this.#digits !== null) return;
    const isEvent = kind === 'telephone-event';
    const payloadType = payloadTypeOf(kind, remote);
    // Packets of two events in turn would be taken for many presses.
    const isSecondKey = isEvent && this.#presser !== speaker && nowMs - this.#eventAtMs < EVENT_PAUSE_MS;
    const isNoise = kind === 'comfort-noise' && playback !== null;
    if (payloadType === null || kind === 'unknown' || isSecondKey || isNoise) {
      this.outbound.skip(header);
      this.counters.heldBack += 1;
      return;
    }
    const ticks =
      kind === 'OPUS' ? opusTicks(datagram, header.payloadOffset, header.payloadBytes) : header.payloadBytes;
    if (!this.outbound.admit(header, nowMs, isEvent, speaker.clockHz, ticks)) {
      this.counters.heldBack += 1;
      return;
    }
    this.#forwardedAtMs = nowMs;
    if (isEvent) {
      this.#eventAtMs = nowMs;
      this.#presser = speaker;
    }
    if (playback !== null && !isEvent && kind !== 'comfort-noise') {
      const packet = this.#sendRing.take(RTP_HEADER_BYTES + header.payloadBytes);
      if (!isG711(remote.codec) || !isG711(kind)) {
        // Both use G.722. All other transcoding uses the playout.
        const audio = speaker.decoded(kind, datagram, header);
        const ticks = header.payloadBytes;
        if (playback.isWide) {
          const samples = this.#copyOf(audio.wide(), 2 * ticks);
          playback.mixWide(samples, ticks, this.outbound.sequence);
          this.#encodeWide(samples, 2 * ticks, packet);
        } else {
          const samples = this.#copyOf(audio.narrow(), ticks);
          playback.mixSamples(samples, ticks, this.outbound.sequence);
          this.#encode(samples, ticks, packet);
        }
      } else {
        playback.mix(remote.codec, packet, this.outbound.sequence, kind, datagram, header.payloadOffset);
      }
      this.#send(packet, payloadType);
      if (playback.isSpent) this.#endPlayback('played');
      return;
    }
    const isOtherClock = isEvent && speaker.eventClockHz !== this.eventClockHz;
    const isAsItCame = isEvent || kind === 'comfort-noise' || kind === remote.codec;
    if (isAsItCame && isLast && !isOtherClock) {
      const start = header.payloadOffset - RTP_HEADER_BYTES;
      const end = header.payloadOffset + header.payloadBytes;
      const packet = start === 0 && end === datagram.length ? datagram : datagram.subarray(start, end);
      this.#send(packet, payloadType);
      return;
    }
    const packet = this.#sendRing.take(RTP_HEADER_BYTES + header.payloadBytes);
    copyPayload(
      datagram,
      header,
      packet,
      isAsItCame ? null : transcodingTable(kind as G711Codec, remote.codec as G711Codec),
    );
    if (isOtherClock) scaleEventDuration(packet, RTP_HEADER_BYTES, this.eventClockHz / speaker.eventClockHz);
    this.#send(packet, payloadType);
  }

  get takesComfortNoise(): boolean {
    return this.remote?.hasComfortNoise === true;
  }

  get eventClockHz(): number {
    return this.remote?.telephoneEventClockHz ?? 8000;
  }

  /** Loads a codec, before `connect`. */
  async prepare(codec: Codec): Promise<void> {
    if (codec !== 'OPUS') return;
    this.#openingOpus ??= openLegOpus();
    const opus = await this.#openingOpus;
    if (this.#isClosed) return;
    this.opus = opus;
    this.#decoder ??= new PacketDecoder(MOST_PAYLOAD_BYTES);
    this.#decoder.opus = opus.arrivals;
    this.#encoder ??= new PacketEncoder(MOST_PAYLOAD_BYTES);
    this.#encoder.opus = opus.encoder;
  }

  /** Decoded audio of a packet of this leg, valid until the next packet. */
  decoded(codec: Codec, datagram: Uint8Array, header: RtpHeader): PacketAudio {
    this.#decoder ??= new PacketDecoder(MOST_PAYLOAD_BYTES);
    this.#decoder.decode(codec, datagram, header);
    return this.#decoder;
  }

  /** After packets that were not decoded, so that a later one is not mistaken for a duplicate of the last decoded one. */
  forgetDecoded(): void {
    if (this.#decoder !== null) this.#decoder.sequence = -1;
  }

  /** A copy that may be modified. */
  #copyOf(samples: Int16Array, count: number): Int16Array {
    for (let i = 0; i < count; i++) scratch[i] = samples[i]!;
    return scratch;
  }

  #encode(samples: Int16Array, count: number, packet: Uint8Array): void {
    this.#encoder ??= new PacketEncoder(MOST_PAYLOAD_BYTES);
    this.#encoder.encode(this.remote!.codec, samples, count, packet, RTP_HEADER_BYTES);
  }

  #encodeWide(samples: Int16Array, count: number, packet: Uint8Array): void {
    this.#encoder ??= new PacketEncoder(MOST_PAYLOAD_BYTES);
    this.#encoder.encodeWide(this.remote!.codec, samples, count, packet, RTP_HEADER_BYTES);
  }

  /** Whether `sendMixed` uses 16 kHz. A sound over a mix must be 16 kHz too. */
  get wantsWideFrames(): boolean {
    const codec = this.remote?.codec ?? 'PCMU';
    return CODECS[codec].sampleRateHz === 16_000 && this.#playback?.isWide !== false;
  }

  /**
   * Sends 20 ms of a mix or playout, with the playback mixed in. Sends nothing while a playback replaces it, or during
   * a telephone event of the only other party.
   */
  sendMixed(samples: Int16Array, nowMs: number, isWide: boolean): void {
    const remote = this.remote;
    const playback = this.#playback;
    if (remote === null || !this.isListening || playback?.over === false || this.#digits !== null) return;
    if (this.feed !== 'mix' && nowMs - this.#eventAtMs < EVENT_PAUSE_MS) return;
    this.#forwardedAtMs = nowMs;
    if (playback === null && this.takesComfortNoise && this.#isPause(samples, nowMs)) return;
    this.outbound.admitGenerated(nowMs);
    if (playback === null) this.#sendSamples(samples, remote, isWide);
    else {
      const mixed = this.#copyOf(samples, isWide ? 2 * FRAME_SAMPLES : FRAME_SAMPLES);
      if (isWide) playback.mixWide(mixed, FRAME_SAMPLES, this.outbound.sequence);
      else playback.mixSamples(mixed, FRAME_SAMPLES, this.outbound.sequence);
      this.#sendSamples(mixed, remote, isWide);
    }
    if (playback?.isSpent) this.#endPlayback('played');
  }

  /** Whether a frame belongs to a pause. If so, sends comfort noise of its level from time to time (RFC 3389 §4). */
  #isPause(samples: Int16Array, nowMs: number): boolean {
    const power = meanPower(samples);
    this.#quietFrames = power < PAUSE_POWER ? this.#quietFrames + 1 : 0;
    const pausing = this.#quietFrames - FRAMES_BEFORE_PAUSE;
    if (pausing <= 0) return false;
    if ((pausing - 1) % FRAMES_PER_COMFORT_NOISE === 0) this.#sendComfortNoise(nowMs, Math.round(-powerToDbov(power)));
    return true;
  }

  /** Encodes and sends 20 ms that `outbound` has admitted. */
  #sendSamples(samples: Int16Array, remote: RemoteMedia, isWide = false): void {
    if (remote.codec !== 'OPUS') {
      const packet = this.#sendRing.take(RTP_HEADER_BYTES + FRAME_SAMPLES);
      if (isWide) this.#encodeWide(samples, 2 * FRAME_SAMPLES, packet);
      else this.#encode(samples, FRAME_SAMPLES, packet);
      this.#send(packet, remote.payloadType);
      return;
    }
    const octets = this.#encoder?.encodeOpus(samples, isWide) ?? null;
    const isPause = remote.usesDtx === true && octets !== null && isOpusPause(octets.length);
    // The first packet of a pause announces it, so that the peer does not conceal a loss.
    const isAnnounced = isPause && this.#isOpusPausing;
    this.#isOpusPausing = isPause;
    if (octets === null || octets.length === 0 || isAnnounced) {
      this.outbound.suppress();
      return;
    }
    const packet = this.#sendRing.take(RTP_HEADER_BYTES + octets.length);
    packet.set(octets, RTP_HEADER_BYTES);
    // The frame was counted with the size of G.711 until its size was known.
    this.outbound.octetsSent += octets.length - FRAME_SAMPLES;
    this.#send(packet, remote.payloadType);
  }

  /** The looped sound of this leg; null without one. */
  get loopedSound(): LoopedSound | null {
    return this.feed in LOOP_FRAMES ? (this.feed as LoopedSound) : null;
  }

  /** Sends the next 20 ms of the looped sound, unless a playback or key presses are being sent. */
  sendLoop(nowMs: number): void {
    const remote = this.remote;
    const sound = this.loopedSound;
    if (sound === null || remote === null || !this.isListening || this.#playback !== null || this.#digits !== null)
      return;
    if (sound !== 'silence' || !this.takesComfortNoise) this.#sendFrame(sound, remote, nowMs);
    // Few packets, but enough to keep a NAT mapping and to signal that we are alive.
    else if (this.#loopFrame++ % FRAMES_PER_COMFORT_NOISE === 0) this.#sendComfortNoise(nowMs, QUIETEST_COMFORT_NOISE);
  }

  /** @param level in -dBov, 0 to 127 (RFC 3389 §3.1) */
  #sendComfortNoise(nowMs: number, level: number): void {
    this.outbound.admitPause(nowMs, 1);
    const packet = this.#sendRing.take(RTP_HEADER_BYTES + 1);
    packet[RTP_HEADER_BYTES] = level;
    this.#send(packet, COMFORT_NOISE_PAYLOAD_TYPE);
  }

  #sendFrame(sound: LoopedSound, remote: RemoteMedia, nowMs: number): void {
    const frames = LOOP_FRAMES[sound](remote.codec === 'PCMA' ? 'PCMA' : 'PCMU');
    const frame = frames[this.#loopFrame % frames.length]!;
    this.#loopFrame = (this.#loopFrame + 1) % frames.length;
    this.outbound.admitGenerated(nowMs);
    if (!isG711(remote.codec)) {
      this.#sendSamples(decodedMulaw(frame), remote);
      return;
    }
    const packet = this.#sendRing.take(RTP_HEADER_BYTES + frame.length);
    packet.set(frame, RTP_HEADER_BYTES);
    this.#send(packet, remote.payloadType);
  }

  /** Sends the next 20 ms of a playback, unless it is mixed into the other party's packets. */
  sendPlayback(nowMs: number): void {
    const { remote } = this;
    const playback = this.#playback;
    if (playback?.requiresListener && !this.isListening) this.#endPlayback('not-listening');
    if (playback === null || remote === null || !this.isListening || this.#digits !== null) return;
    if (playback.over && nowMs - this.#forwardedAtMs < OTHER_PARTY_PAUSE_MS) return;
    this.outbound.admitGenerated(nowMs);
    if (isG711(remote.codec)) {
      const packet = this.#sendRing.take(RTP_HEADER_BYTES + FRAME_SAMPLES);
      playback.takeFrame(remote.codec, packet);
      this.#send(packet, remote.payloadType);
    } else {
      playback.takeSamples(scratch, FRAME_SAMPLES);
      this.#sendSamples(scratch, remote, playback.isWide);
    }
    if (playback.isSpent) this.#endPlayback('played');
  }

  /** Sends the due packets of the key presses. Stops them when the peer no longer receives media or events. */
  sendDigits(nowMs: number): void {
    const { remote } = this;
    const digits = this.#digits;
    if (digits === null) return;
    const payloadType = remote !== null && this.isListening ? remote.telephoneEventPayloadType : null;
    if (payloadType === null) {
      this.#endDigits('stopped');
      return;
    }
    const packets = digits.takeFrame();
    // Many phones end a call without packets, and a pause may last a minute.
    if (packets === 0) this.#sendFrame('silence', remote!, nowMs);
    for (let sent = 0; sent < packets; sent++) {
      this.outbound.admitEvent(nowMs, digits.isFirst && sent === 0, TELEPHONE_EVENT_BYTES);
      const packet = this.#sendRing.take(RTP_HEADER_BYTES + TELEPHONE_EVENT_BYTES);
      writeTelephoneEvent(packet, RTP_HEADER_BYTES, digits.event);
      scaleEventDuration(packet, RTP_HEADER_BYTES, this.eventClockHz / 8000);
      this.#send(packet, payloadType);
    }
    if (digits.isSpent) this.#endDigits('played');
  }

  receiveRtcp(datagram: Buffer, source: Endpoint, nowMs: number, unixMs: number): void {
    const allowed = this.rtpTarget;
    if (allowed.isUnspecified || !source.isSameHost(allowed) || source.port === 0) {
      this.counters.refusedSource += 1;
      return;
    }
    const bytes = this.#activeSrtp?.openRtcp(datagram) ?? datagram.length;
    if (bytes < 0) return;
    const malformedBefore = this.rtcp.malformed;
    this.rtcp.receive(datagram.subarray(0, bytes), nowMs, unixMs);
    if (this.rtcp.malformed !== malformedBefore) return;
    this.#rtcpTarget.port = source.port;
    this.lastReportAtMs = nowMs;
  }

  sendDueRtcp(nowMs: number, unixMs: number): void {
    this.#srtp?.tick();
    if (this.#signalled.isUnspecified || this.#isClosed) return;
    const report = this.rtcp.takeDueReport(nowMs, unixMs);
    if (report !== null) this.#sendRtcp(report);
  }

  quality(): LegQuality | null {
    const { reception } = this;
    const codec = this.#usedCodec;
    if (codec === undefined) return null;
    const snrDb = this.snr.estimateDb();
    return {
      codec,
      packets_received: reception.packetsReceived,
      packets_lost: reception.packetsLost,
      jitter_ms: rounded(reception.jitterMs, 2),
      mos: reception.packetsReceived === 0 ? null : rounded(this.#mos(), 2),
      snr_db: snrDb === null ? null : rounded(snrDb, 1),
      encryption: this.#activeSrtp?.suite ?? null,
    };
  }

  /** Sends an RTCP BYE (RFC 3550 §6.6) and closes both sockets. */
  async close(nowMs: number, unixMs: number): Promise<void> {
    this.stopPlaying();
    this.#endDigits('stopped');
    if (this.#isClosed) return;
    if (!this.#signalled.isUnspecified && this.outbound.packetsSent > 0)
      this.#sendRtcp(this.rtcp.farewell(nowMs, unixMs));
    this.#isClosed = true;
    await this.#closeOpus();
    await Promise.all([this.#rtpSocket.close(), this.#rtcpSocket.close()]);
  }

  async #closeOpus(): Promise<void> {
    if (this.#encoder !== null) this.#encoder.opus = null;
    const opus = await this.#openingOpus?.catch(() => null);
    if (opus) closeLegOpus(opus);
  }

  dump(): object {
    const { remote, feed, counters, rtcp, lastReceivedAtMs } = this;
    return {
      localRtpPort: this.#isClosed ? null : this.#rtpSocket.port,
      remote: remote && { codec: remote.codec, direction: remote.direction, rtpPort: remote.rtpPort },
      feed,
      playback: this.#playback?.dump() ?? null,
      lastReceivedAtMs,
      latch: this.latch.dump(),
      outbound: this.outbound.dump(),
      quality: this.quality(),
      counters: { ...counters },
      srtp: this.#srtp?.dump() ?? null,
      rtcp: {
        sent: rtcp.reportsSent,
        received: rtcp.reportsReceived,
        malformed: rtcp.malformed,
        roundTripMs: rtcp.roundTripMs,
      },
    };
  }

  #mos(): number {
    const { packetsLost, packetsExpected, jitterMs } = this.reception;
    const lossFraction = packetsExpected === 0 ? 0 : packetsLost / packetsExpected;
    return estimateMos({ lossFraction, jitterMs, roundTripMs: this.rtcp.roundTripMs });
  }

  #endDigits(end: PlaybackEnd): void {
    const digits = this.#digits;
    if (digits === null) return;
    this.#digits = null;
    this.outbound.switchSource();
    digits.onEnded(end);
  }

  #endPlayback(end: SendingEnd): void {
    const playback = this.#playback;
    if (playback === null) return;
    this.#playback = null;
    if (!playback.over) this.outbound.switchSource();
    playback.end(end);
  }

  /**
   * Writes the header that `outbound` admitted and sends the packet to the latched source, or else to the SDP address.
   */
  #send(packet: Buffer, payloadType: number): void {
    if (this.#isClosed) return;
    const { outbound } = this;
    const fields = this.#fields;
    fields.payloadType = payloadType;
    fields.sequence = outbound.sequence;
    fields.timestamp = outbound.timestamp;
    fields.ssrc = outbound.ssrc;
    fields.marker = outbound.marker;
    writeRtpHeader(packet, fields);
    const sent = this.#protected(packet);
    if (sent !== null) this.#rtpSocket.send(sent, this.rtpTarget);
  }

  /** The packet, or its encrypted copy: the original must stay readable for recorder and taps. */
  #protected(packet: Buffer): Buffer | null {
    const srtp = this.#activeSrtp;
    if (srtp === null) return packet;
    const copy = this.#sendRing.take(packet.length + srtp.rtpTagBytes);
    packet.copy(copy);
    return srtp.protectRtp(copy, packet.length) < 0 ? null : copy;
  }

  get #activeSrtp(): LegSrtp | null {
    return this.remote?.srtp === undefined ? null : this.#srtp;
  }

  #sendRtcp(report: Buffer): void {
    if (this.#rtcpTarget.port === 0) return;
    this.#rtcpTarget.copyHost(this.rtpTarget);
    // A peer that holds with 0.0.0.0 receives nothing (RFC 3264 §8.4), and the kernel would send to this machine.
    if (this.#rtcpTarget.isIPv4 && this.#rtcpTarget.word3 === 0) return;
    const srtp = this.#activeSrtp;
    if (srtp === null) {
      this.#rtcpSocket.send(report, this.#rtcpTarget);
      return;
    }
    const copy = Buffer.concat([report], report.length + MOST_SRTP_OVERHEAD_BYTES);
    const bytes = srtp.protectRtcp(copy, report.length);
    if (bytes >= 0) this.#rtcpSocket.send(copy.subarray(0, bytes), this.#rtcpTarget);
  }
}

/** Null if the peer does not support the kind. */
function payloadTypeOf(kind: PayloadKind, remote: RemoteMedia): number | null {
  if (kind === 'telephone-event') return remote.telephoneEventPayloadType;
  if (kind !== 'comfort-noise') return remote.payloadType;
  return remote.hasComfortNoise === true ? COMFORT_NOISE_PAYLOAD_TYPE : null;
}

function isG711(kind: PayloadKind): kind is G711Codec {
  return kind === 'PCMU' || kind === 'PCMA';
}

function copyPayload(datagram: Uint8Array, header: RtpHeader, packet: Uint8Array, table: Uint8Array | null): void {
  for (let i = 0; i < header.payloadBytes; i++) {
    const octet = datagram[header.payloadOffset + i]!;
    packet[RTP_HEADER_BYTES + i] = table === null ? octet : table[octet]!;
  }
}

function decodedMulaw(octets: Uint8Array): Int16Array {
  for (let i = 0; i < octets.length; i++) scratch[i] = MULAW_TO_LINEAR[octets[i]!]!;
  return scratch;
}

function rounded(value: number, digits: number): number {
  return Number(value.toFixed(digits));
}
