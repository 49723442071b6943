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

/** A peer on real sockets that sends on request and records what it receives. */
export class RtpPhone {
  readonly received: { header: RtpHeader; payload: Buffer }[] = [];
  readonly receivedRtcp: Buffer[] = [];
  ssrc = 0x1000;
  sequence = 65_530;
  timestamp = 0xffff_ff00;
  srtp: PhoneSrtp | null = null;
  readonly #rtp: Socket;
  readonly #rtcp: Socket;
  readonly #waiting = new Set<() => void>();

  private constructor(rtp: Socket, rtcp: Socket) {
    this.#rtp = rtp;
    this.#rtcp = rtcp;
    rtp.on('message', (datagram) => {
      const header = emptyRtpHeader();
      const bytes = this.srtp?.receiver.openRtp(datagram) ?? datagram.length;
      if (bytes < 0 || !parseRtp(datagram, header, bytes)) throw new Error('the relay sent what is not RTP');
      const payload = datagram.subarray(header.payloadOffset, header.payloadOffset + header.payloadBytes);
      this.received.push({ header, payload });
      this.#wake();
    });
    rtcp.on('message', (datagram) => {
      this.receivedRtcp.push(datagram);
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

  say(toPort: number, codec: Codec, payload: Uint8Array, marker = false): void {
    const units = codec === 'OPUS' ? 6 * opusTicks(payload, 0, payload.length) : payload.length;
    this.sendRtp(toPort, { payloadType: CODECS[codec].payloadType, marker }, payload);
    this.timestamp = (this.timestamp + units) >>> 0;
  }

  /** Sends a packet with the current numbers and advances the sequence number only. */
  sendRtp(toPort: number, fields: { payloadType: number; marker?: boolean }, payload: Uint8Array): void {
    const { ssrc, sequence, timestamp } = this;
    const packet = buildRtpPacket({ ssrc, sequence, timestamp, ...fields }, payload);
    this.sequence = (sequence + 1) & 0xffff;
    const sent = this.srtp === null ? packet : this.srtp.seal(packet, ssrc);
    this.sendRaw(toPort, sent);
  }

  /** An SRTP audio packet, not sent. */
  sealed(payload: Uint8Array): Buffer {
    const { ssrc, sequence, timestamp, srtp } = this;
    if (srtp === null) throw new Error('the phone speaks plain RTP');
    this.sequence = (sequence + 1) & 0xffff;
    return srtp.seal(buildRtpPacket({ ssrc, sequence, timestamp, payloadType: 0 }, payload), ssrc);
  }

  /** Sends a key press (RFC 4733): two updates and three end packets with one timestamp. */
  press(toPort: number, event: number, payloadType = 101, { losesEnd = false } = {}): void {
    const packets = [
      [160, false],
      [320, false],
      ...(losesEnd
        ? []
        : ([
            [480, true],
            [480, true],
            [480, true],
          ] as const)),
    ] as const;
    for (const [durationUnits, isEnd] of packets) {
      this.sendRtp(toPort, { payloadType }, telephoneEventPayload({ event, isEnd, volume: 10, durationUnits }));
    }
    this.timestamp = (this.timestamp + 480) >>> 0;
  }

  sendRaw(toPort: number, datagram: Uint8Array): void {
    this.#rtp.send(datagram, toPort, '127.0.0.1');
  }

  sendRtcp(toPort: number, packet: Buffer): void {
    this.sendRawRtcp(toPort, this.srtp === null ? packet : this.srtp.sealRtcp(packet));
  }

  sendRawRtcp(toPort: number, datagram: Uint8Array): void {
    this.#rtcp.send(datagram, toPort, '127.0.0.1');
  }

  /** Resolves when `condition` holds, checked after every packet. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  async untilReceived(count: number): Promise<void> {
    await this.until(() => this.received.length >= count);
  }

  receivedSamples(codec: Codec, from = 0): Int16Array {
    return this.#decoded(codec, from, (decoder) => decoder.narrow().subarray(0, decoder.ticks));
  }

  receivedWideSamples(codec: Codec): Int16Array {
    return this.#decoded(codec, 0, (decoder) => decoder.wide().subarray(0, 2 * decoder.ticks));
  }

  #decoded(codec: Codec, from: number, samplesOf: (decoder: PacketDecoder) => Int16Array): Int16Array {
    const decoder = new PacketDecoder(1500);
    const parts = this.received.slice(from).map(({ header, payload }) => {
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

/** SRTP keys of the phone for both directions, without SDP. */
export class PhoneSrtp {
  readonly suite: SrtpSuite;
  readonly receiver: SrtpReceiver;
  readonly #ours: KeyObject;
  #own: KeyObject;
  #serial = 1;
  readonly #senders = new Map<number, SrtpSender>();

  /** @param own master key and salt for sending */
  constructor(suite: SrtpSuite, own = masterKey(suite)) {
    this.suite = suite;
    this.#own = own;
    this.#ours = masterKey(suite);
    this.receiver = new SrtpReceiver({ suite, master: this.#ours });
  }

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

export async function freePortRange(pairs: number): Promise<{ min: number; max: number }> {
  const min = await freePorts(2 * pairs);
  return { min, max: min + 2 * pairs - 1 };
}
