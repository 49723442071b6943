import { randomInt } from 'node:crypto';
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { isIPv6 } from 'node:net';
import { CODECS, type RemoteMedia } from '../../machines/events.ts';
import { FRAME_MS, FRAME_SAMPLES } from '../../media/dsp/tones.ts';
import { closeLegOpus, type LegOpus, openLegOpus } from '../../media/relay/leg-opus.ts';
import { PacketEncoder } from '../../media/relay/packet-encoder.ts';
import { buildRtpPacket } from '../../media/rtp/packet.ts';
import { eventOfDigit, telephoneEventPayload } from '../../media/rtp/telephone-event.ts';
import { LegSrtp } from '../../media/srtp/leg-srtp.ts';
import { AudioReceiver } from './audio-receiver.ts';
import { type FrameSource, nextPayload } from './audio-source.ts';

const DIGIT_FRAMES = 5;

/** RTP side of one call: sends its source every 20 ms and records what arrives. */
export class Voice {
  readonly rtpPort: number;
  readonly receiver = new AudioReceiver();
  sentPackets = 0;
  /** Longest time without a packet because this process was busy. */
  longestGapMs = 0;
  /** Datagrams that failed SRTP authentication. */
  droppedPackets = 0;
  readonly #rtp: Socket;
  readonly #rtcp: Socket;
  readonly #source: FrameSource | null;
  readonly #opus: LegOpus | null;
  readonly #ssrc = randomInt(1, 0xffff_ffff);
  readonly #waiting = new Set<() => void>();
  #remote: RemoteMedia | null = null;
  #srtp: LegSrtp | null = null;
  #timer: NodeJS.Timeout | null = null;
  #startedAtMs = 0;
  #sentAtMs = 0;
  readonly #encoder = new PacketEncoder(FRAME_SAMPLES);
  #frames = 0;
  #sequence = randomInt(0, 0x7fff);
  #timestamp = randomInt(0, 0xffff_ffff);
  #closed: Promise<void> | null = null;
  #digits: { event: number; frame: number; timestamp: number }[] = [];

  private constructor(sockets: [Socket, Socket], source: FrameSource | null, opus: LegOpus | null) {
    this.#opus = opus;
    this.#encoder.opus = opus?.encoder ?? null;
    this.receiver.opus = opus?.arrivals ?? null;
    [this.#rtp, this.#rtcp] = sockets;
    this.rtpPort = this.#rtp.address().port;
    this.#source = source;
    this.#rtp.on('error', () => {});
    this.#rtcp.on('error', () => {});
    this.#rtp.on('message', (datagram) => {
      const bytes = this.#isEncrypted ? this.#srtp!.openRtp(datagram, true) : datagram.length;
      if (bytes < 0) this.droppedPackets++;
      else this.receiver.take(datagram.subarray(0, bytes), this.#remote);
      for (const look of this.#waiting) look();
    });
  }

  static async open(options: { host: string; source: FrameSource | null; hasOpus?: boolean }): Promise<Voice> {
    const opus = options.hasOpus === true ? await openLegOpus() : null;
    return new Voice(await openPortPair(options.host), options.source, opus);
  }

  talkTo(remote: RemoteMedia): void {
    if (this.#closed !== null) return;
    this.#remote = remote;
    if (remote.srtp !== undefined) {
      if (this.#srtp === null) this.#srtp = new LegSrtp(remote.srtp, this.#ssrc);
      else this.#srtp.rekey(remote.srtp);
    }
    if (this.#timer !== null || this.#source === null) return;
    this.#startedAtMs = performance.now();
    this.#sentAtMs = this.#startedAtMs;
    this.#frames = 0;
    this.#beat();
  }

  /** Resolves when the received audio satisfies `isEnough`, checked for every packet. */
  async untilReceived(isEnough: (receiver: AudioReceiver) => boolean, timeoutMs = 60_000) {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const look = () => {
      if (isEnough(this.receiver)) resolve();
    };
    const timer = setTimeout(() => {
      reject(new Error(`received only ${this.receiver.packets} packets in ${timeoutMs} ms`));
    }, timeoutMs);
    this.#waiting.add(look);
    look();
    try {
      await promise;
      return this.receiver.received();
    } finally {
      clearTimeout(timer);
      this.#waiting.delete(look);
    }
  }

  /** Resolves when the last half second of received audio has the tone at more than `aboveDbov`. */
  async untilTone(frequencyHz: number, aboveDbov = -16) {
    let level = Number.NEGATIVE_INFINITY;
    try {
      return await this.untilReceived((receiver) => {
        if (receiver.packets <= 25) return false;
        level = receiver.received().toneLevels([frequencyHz], 500)[0]!;
        return level > aboveDbov;
      });
    } catch (error) {
      throw new Error(`the tone of ${frequencyHz} Hz has ${level.toFixed(1)} dBov`, { cause: error });
    }
  }

  /** Sends a digit as a telephone-event of 100 ms in place of audio. */
  press(digit: string): void {
    const event = eventOfDigit(digit);
    if (event < 0) throw new RangeError('not a DTMF digit');
    if (this.#remote?.telephoneEventPayloadType == null) throw new Error('the peer did not agree to telephone-event');
    this.#digits.push({ event, frame: 0, timestamp: 0 });
  }

  close(): Promise<void> {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#remote = null;
    this.#closed ??= Promise.all([closed(this.#rtp), closed(this.#rtcp)]).then(() => {
      if (this.#opus !== null) closeLegOpus(this.#opus);
    });
    return this.#closed;
  }

  /** Frames are due by the time since the start, so that late timers neither drift nor lose frames. */
  #beat = (): void => {
    const nowMs = performance.now();
    this.longestGapMs = Math.max(this.longestGapMs, nowMs - this.#sentAtMs);
    this.#sentAtMs = nowMs;
    const dueFrames = Math.floor((nowMs - this.#startedAtMs) / FRAME_MS) + 1;
    // Time lost in a long stall (debugger, suspended machine) is skipped.
    if (dueFrames - this.#frames > 50) this.#frames = dueFrames - 1;
    while (this.#frames < dueFrames) {
      this.#frames++;
      this.#sendFrame();
    }
    const nextMs = this.#startedAtMs + this.#frames * FRAME_MS - performance.now();
    this.#timer = setTimeout(this.#beat, Math.max(1, nextMs));
  };

  #sendFrame(): void {
    const remote = this.#remote;
    const timestamp = this.#timestamp;
    const clockPerMs = CODECS[remote?.codec ?? 'PCMU'].clockHz / 1000;
    this.#timestamp = (timestamp + FRAME_MS * clockPerMs) >>> 0;
    if (remote === null || this.#source === null) return;
    const payload = nextPayload(this.#source, remote.codec, this.#encoder);
    // A peer that holds the call receives nothing (RFC 3264 section 8.4).
    if (remote.direction === 'sendonly' || remote.direction === 'inactive') return;
    const digit = this.#digits[0];
    if (digit === undefined) this.#send(remote, { payloadType: remote.payloadType, timestamp, marker: false }, payload);
    else this.#sendDigit(remote, digit, timestamp);
  }

  /** RFC 4733 section 2.5.1: one timestamp per press, increasing duration, three end packets. */
  #sendDigit(remote: RemoteMedia, digit: { event: number; frame: number; timestamp: number }, timestamp: number): void {
    if (digit.frame === 0) digit.timestamp = timestamp;
    digit.frame++;
    const isEnd = digit.frame === DIGIT_FRAMES;
    const payload = telephoneEventPayload({
      event: digit.event,
      isEnd,
      volume: 10,
      durationUnits: (digit.frame * FRAME_SAMPLES * (remote.telephoneEventClockHz ?? 8000)) / 8000,
    });
    for (let copy = 0; copy < (isEnd ? 3 : 1); copy++) {
      this.#send(
        remote,
        {
          payloadType: remote.telephoneEventPayloadType ?? 101,
          timestamp: digit.timestamp,
          marker: digit.frame === 1,
        },
        payload,
      );
    }
    if (isEnd) this.#digits.shift();
  }

  #send(
    remote: RemoteMedia,
    fields: { payloadType: number; timestamp: number; marker: boolean },
    payload: Uint8Array,
  ): void {
    const packet = buildRtpPacket({ ...fields, sequence: this.#sequence, ssrc: this.#ssrc }, payload);
    this.#sequence = (this.#sequence + 1) & 0xffff;
    this.sentPackets++;
    const sent = this.#isEncrypted ? this.#protected(packet) : packet;
    this.#rtp.send(sent, remote.rtpPort, remote.host, () => {});
  }

  get #isEncrypted(): boolean {
    return this.#remote?.srtp !== undefined;
  }

  #protected(packet: Buffer): Buffer {
    const srtp = this.#srtp!;
    const copy = Buffer.concat([packet], packet.length + srtp.rtpTagBytes);
    srtp.protectRtp(copy, packet.length);
    return copy;
  }
}

/** A free even port and the next one (RFC 3550 section 11). */
async function openPortPair(host: string): Promise<[Socket, Socket]> {
  for (let attempt = 0; ; attempt++) {
    const type = isIPv6(host) ? 'udp6' : 'udp4';
    const rtp = createSocket(type);
    const rtcp = createSocket(type);
    try {
      rtp.bind(0, host);
      await once(rtp, 'listening');
      const { port } = rtp.address();
      if (port % 2 !== 0) throw new Error('the port is odd');
      rtcp.bind(port + 1, host);
      await once(rtcp, 'listening');
      return [rtp, rtcp];
    } catch (error) {
      rtp.close();
      rtcp.close();
      if (attempt === 100) throw error;
    }
  }
}

function closed(socket: Socket): Promise<void> {
  return new Promise((resolve) => socket.close(() => resolve()));
}
