import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { CODECS, type Codec, type RemoteMedia, type SrtpKeys, type SrtpSuite } from '../../machines/events.ts';
import { opusTicks } from '../../media/codecs/opus.ts';
import { PacketDecoder } from '../../media/relay/packet-decoder.ts';
import { buildRtpPacket, emptyRtpHeader, parseRtp, type RtpHeader } from '../../media/rtp/packet.ts';
import { telephoneEventPayload } from '../../media/rtp/telephone-event.ts';
import { MOST_SRTP_OVERHEAD_BYTES, SUITES } from '../../media/srtp/crypto-suites.ts';
import { SrtpReceiver } from '../../media/srtp/srtp-receiver.ts';
import { SrtpSender } from '../../media/srtp/srtp-sender.ts';
import { freePorts } from '../free-ports.ts';

/** A peer on real sockets: says what it is told, keeps what it hears. */
export class RtpPhone {
  readonly heard: { header: RtpHeader; payload: Buffer }[] = [];
  readonly heardRtcp: Buffer[] = [];
  ssrc = 0x1000;
  sequence = 65_530;
  timestamp = 0xffff_ff00;
  /** Null: speaks plain RTP. */
  srtp: PhoneSrtp | null = null;
  readonly #rtp: Socket;
  readonly #rtcp: Socket;
  readonly #waiting = new Set<() => void>();

  private constructor(rtp: Socket, rtcp: Socket) {
    this.#rtp = rtp;
    this.#rtcp = rtcp;
    rtp.on('message', (datagram) => {
      const header = emptyRtpHeader();
      const bytes = this.srtp?.ear.openRtp(datagram) ?? datagram.length;
      if (bytes < 0 || !parseRtp(datagram, header, bytes)) throw new Error('the relay sent what is not RTP');
      const payload = datagram.subarray(header.payloadOffset, header.payloadOffset + header.payloadBytes);
      this.heard.push({ header, payload });
      this.#wake();
    });
    rtcp.on('message', (datagram) => {
      this.heardRtcp.push(datagram);
      this.#wake();
    });
  }

  static async open(): Promise<RtpPhone> {
    const [rtp, rtcp] = await Promise.all([openSocket(), openSocket()]);
    return new RtpPhone(rtp, rtcp);
  }

  get port(): number {
    return this.#rtp.address().port;
  }

  remote(codec: Codec = 'PCMU', overrides: Partial<RemoteMedia> = {}): RemoteMedia {
    return {
      host: '127.0.0.1',
      rtpPort: this.port,
      rtcpPort: this.#rtcp.address().port,
      codec,
      payloadType: CODECS[codec].payloadType,
      telephoneEventPayloadType: 101,
      direction: 'sendrecv',
      ...(this.srtp !== null && { srtp: this.srtp.offered }),
      ...overrides,
    };
  }

  /** Sends one audio frame and moves on by its length. */
  say(toPort: number, codec: Codec, payload: Uint8Array, marker = false): void {
    const units = codec === 'OPUS' ? 6 * opusTicks(payload, 0, payload.length) : payload.length;
    this.sendRtp(toPort, { payloadType: CODECS[codec].payloadType, marker }, payload);
    this.timestamp = (this.timestamp + units) >>> 0;
  }

  /** Sends a packet with the phone's present sequence number and timestamp; only the former moves on. */
  sendRtp(toPort: number, fields: { payloadType: number; marker?: boolean }, payload: Uint8Array): void {
    const { ssrc, sequence, timestamp } = this;
    const packet = buildRtpPacket({ ssrc, sequence, timestamp, ...fields }, payload);
    this.sequence = (sequence + 1) & 0xffff;
    const sent = this.srtp === null ? packet : this.srtp.seal(packet, ssrc);
    this.sendRaw(toPort, sent);
  }

  /** A protected audio packet that is not sent yet. */
  sealed(payload: Uint8Array): Buffer {
    const { ssrc, sequence, timestamp, srtp } = this;
    if (srtp === null) throw new Error('the phone speaks plain RTP');
    this.sequence = (sequence + 1) & 0xffff;
    return srtp.seal(buildRtpPacket({ ssrc, sequence, timestamp, payloadType: 0 }, payload), ssrc);
  }

  /** A key press as RFC 4733 has it: two updates, then the end three times, all with one timestamp. */
  press(toPort: number, event: number, payloadType = 101): void {
    for (const [durationUnits, isEnd] of [
      [160, false],
      [320, false],
      [480, true],
      [480, true],
      [480, true],
    ] as const) {
      this.sendRtp(toPort, { payloadType }, telephoneEventPayload({ event, isEnd, volume: 10, durationUnits }));
    }
    this.timestamp = (this.timestamp + 480) >>> 0;
  }

  sendRaw(toPort: number, datagram: Uint8Array): void {
    this.#rtp.send(datagram, toPort, '127.0.0.1');
  }

  /** An RTCP packet, whose SSRC need not be the phone's. */
  sendRtcp(toPort: number, packet: Buffer): void {
    this.sendRawRtcp(toPort, this.srtp === null ? packet : this.srtp.sealRtcp(packet));
  }

  sendRawRtcp(toPort: number, datagram: Uint8Array): void {
    this.#rtcp.send(datagram, toPort, '127.0.0.1');
  }

  /** Resolves when `condition` holds, looked at after every packet heard. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  async hears(count: number): Promise<void> {
    await this.until(() => this.heard.length >= count);
  }

  /** What was heard from packet `from` on, decoded. */
  samplesHeard(codec: Codec, from = 0): Int16Array {
    return this.#decoded(codec, from, (decoder) => decoder.narrow().subarray(0, decoder.ticks));
  }

  /** As `samplesHeard`, at 16 kHz. */
  wideSamplesHeard(codec: Codec): Int16Array {
    return this.#decoded(codec, 0, (decoder) => decoder.wide().subarray(0, 2 * decoder.ticks));
  }

  #decoded(codec: Codec, from: number, samplesOf: (decoder: PacketDecoder) => Int16Array): Int16Array {
    const decoder = new PacketDecoder(1500);
    const parts = this.heard.slice(from).map(({ header, payload }) => {
      decoder.decode(codec, payload, { ...header, payloadOffset: 0 });
      return [...samplesOf(decoder)];
    });
    return Int16Array.from(parts.flat());
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#rtp, this.#rtcp].map((socket) => new Promise<void>((done) => socket.close(() => done()))));
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}

/** The phone's side of SRTP: keys of both directions, which its SDP would have brought. */
export class PhoneSrtp {
  readonly suite: SrtpSuite;
  readonly ear: SrtpReceiver;
  readonly #ours: KeyObject;
  #own: KeyObject;
  #serial = 1;
  readonly #senders = new Map<number, SrtpSender>();

  /** @param own master key and salt of what the phone sends. */
  constructor(suite: SrtpSuite, own = masterKey(suite)) {
    this.suite = suite;
    this.#own = own;
    this.#ours = masterKey(suite);
    this.ear = new SrtpReceiver({ suite, master: this.#ours });
  }

  /** As the session takes them. */
  get offered(): SrtpKeys {
    return { suite: this.suite, serial: this.#serial, local: this.#ours, remote: this.#own };
  }

  keys(): Buffer[] {
    return [this.#own.export(), this.#ours.export()];
  }

  renewOwnKey(): void {
    this.#own = masterKey(this.suite);
    this.#serial += 1;
    this.#senders.clear();
  }

  seal(packet: Buffer, ssrc: number): Buffer {
    const room = Buffer.concat([packet, Buffer.alloc(MOST_SRTP_OVERHEAD_BYTES)]);
    return room.subarray(0, this.#senderOf(ssrc).protectRtp(room, packet.length));
  }

  sealRtcp(packet: Buffer): Buffer {
    const room = Buffer.concat([packet, Buffer.alloc(MOST_SRTP_OVERHEAD_BYTES)]);
    return room.subarray(0, this.#senderOf(packet.readUInt32BE(4)).protectRtcp(room, packet.length));
  }

  #senderOf(ssrc: number): SrtpSender {
    const sender = this.#senders.get(ssrc) ?? new SrtpSender({ suite: this.suite, master: this.#own, ssrc });
    this.#senders.set(ssrc, sender);
    return sender;
  }
}

function masterKey(suite: SrtpSuite): KeyObject {
  return createSecretKey(randomBytes(SUITES[suite].keyBytes + SUITES[suite].saltBytes));
}

async function openSocket(): Promise<Socket> {
  const socket = createSocket('udp4');
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return socket;
}

/** `pairs` even/odd port pairs in a row that are free now. */
export async function freePortRange(pairs: number): Promise<{ min: number; max: number }> {
  const min = await freePorts(2 * pairs);
  return { min, max: min + 2 * pairs - 1 };
}
