import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import type { Codec, RemoteMedia } from '../../machines/events.ts';
import { decodeG711 } from '../../media/dsp/g711.ts';
import { buildRtpPacket, emptyRtpHeader, parseRtp, type RtpHeader } from '../../media/rtp/packet.ts';
import { telephoneEventPayload } from '../../media/rtp/telephone-event.ts';

/** A peer on real sockets: says what it is told, keeps what it hears. */
export class RtpPhone {
  readonly heard: { header: RtpHeader; payload: Buffer }[] = [];
  readonly heardRtcp: Buffer[] = [];
  ssrc = 0x1000;
  sequence = 65_530;
  timestamp = 0xffff_ff00;
  readonly #rtp: Socket;
  readonly #rtcp: Socket;
  readonly #waiting = new Set<() => void>();

  private constructor(rtp: Socket, rtcp: Socket) {
    this.#rtp = rtp;
    this.#rtcp = rtcp;
    rtp.on('message', (datagram) => {
      const header = emptyRtpHeader();
      if (!parseRtp(datagram, header)) throw new Error('the relay sent what is not RTP');
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
      payloadType: codec === 'PCMU' ? 0 : 8,
      telephoneEventPayloadType: 101,
      direction: 'sendrecv',
      ...overrides,
    };
  }

  /** Sends one audio frame and moves on by its length. */
  say(toPort: number, codec: Codec, payload: Uint8Array, marker = false): void {
    this.sendRtp(toPort, { payloadType: codec === 'PCMU' ? 0 : 8, marker }, payload);
    this.timestamp = (this.timestamp + payload.length) >>> 0;
  }

  /** Sends a packet with the phone's present sequence number and timestamp; only the former moves on. */
  sendRtp(toPort: number, fields: { payloadType: number; marker?: boolean }, payload: Uint8Array): void {
    const { ssrc, sequence, timestamp } = this;
    this.sendRaw(toPort, buildRtpPacket({ ssrc, sequence, timestamp, ...fields }, payload));
    this.sequence = (sequence + 1) & 0xffff;
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

  sendRtcp(toPort: number, datagram: Uint8Array): void {
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
    const octets = Buffer.concat(this.heard.slice(from).map((packet) => packet.payload));
    const samples = new Int16Array(octets.length);
    decodeG711(codec, octets, samples);
    return samples;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([this.#rtp, this.#rtcp].map((socket) => new Promise<void>((done) => socket.close(() => done()))));
  }

  #wake(): void {
    for (const resolve of this.#waiting) resolve();
    this.#waiting.clear();
  }
}

async function openSocket(): Promise<Socket> {
  const socket = createSocket('udp4');
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return socket;
}

/** The first of `pairs` even/odd port pairs in a row that the system has free now. */
export async function freePortRange(pairs: number): Promise<{ min: number; max: number }> {
  for (;;) {
    const probe = await openSocket();
    const min = probe.address().port & ~1;
    probe.close();
    const max = min + 2 * pairs - 1;
    if (max <= 65_535 && (await areFree(min, max))) return { min, max };
  }
}

async function areFree(min: number, max: number): Promise<boolean> {
  const sockets: Socket[] = [];
  try {
    for (let port = min; port <= max; port++) {
      const socket = createSocket('udp4');
      sockets.push(socket);
      socket.bind({ port, address: '127.0.0.1', exclusive: true });
      await once(socket, 'listening');
    }
    return true;
  } catch {
    return false;
  } finally {
    for (const socket of sockets) socket.close();
  }
}
