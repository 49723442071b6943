import { writeFile } from 'node:fs/promises';
import type { Codec, RemoteMedia } from '../../machines/events.ts';
import type { OpusDecoder } from '../../media/codecs/opus.ts';
import { PacketDecoder } from '../../media/relay/packet-decoder.ts';
import { emptyRtpHeader, parseRtp } from '../../media/rtp/packet.ts';
import { emptyTelephoneEvent, KeyPressDetector, parseTelephoneEvent } from '../../media/rtp/telephone-event.ts';
import { wavHeader } from '../../media/wav.ts';
import { toneLevelDbov } from '../tone-level.ts';

/** Snapshot of the audio that an `AudioReceiver` has received. */
export interface ReceivedAudio {
  /** Audio packets, duplicates included. */
  packets: number;
  seconds: number;
  /** 8 kHz in sequence order, with silence for lost packets. */
  pcm: Int16Array;
  /** DTMF digits in order, once per press. */
  digits: string;
  continuity: {
    ssrcs: number[];
    lost: number;
    duplicates: number;
    reordered: number;
    payloadTypes: number[];
    /** Longest interval between arrivals. */
    longestGapMs: number;
    /** Datagrams other than audio and telephone-event. */
    foreign: number;
  };
  /** Level of each frequency in dBov over the last `lastMs` (default: everything). */
  toneLevels(frequenciesHz: readonly number[], lastMs?: number): number[];
  saveWav(path: string): Promise<void>;
}

interface ReceivedPacket {
  /** Extended sequence number; a new SSRC continues after the last one. */
  order: number;
  pcm: Int16Array;
}

const STATIC_CODECS: Record<number, Codec> = { 0: 'PCMU', 8: 'PCMA', 9: 'G722' };
const MOST_PAYLOAD_BYTES = 1500;
/** Ten minutes of 20 ms packets. */
const MAX_PACKETS = 10 * 60 * 50;
/** Lost packets in a row that become silence: one second. */
const LONGEST_FILLED_GAP = 50;

/** Collects the RTP packets of one call, decodes their audio and reports it. */
export class AudioReceiver {
  packets = 0;
  digits = '';
  readonly #kept: ReceivedPacket[] = [];
  readonly #seen = new Set<number>();
  readonly #header = emptyRtpHeader();
  readonly #decoder = new PacketDecoder(MOST_PAYLOAD_BYTES);
  readonly #event = emptyTelephoneEvent();
  readonly #keys = new KeyPressDetector((digit) => {
    this.digits += digit;
  });
  readonly #ssrcs: number[] = [];
  readonly #payloadTypes = new Set<number>();
  #highest = -1;
  #orderBase = 0;
  #duplicates = 0;
  #reordered = 0;
  #foreign = 0;
  #longestGapMs = 0;
  #lastArrivalMs = 0;

  set opus(opus: OpusDecoder | null) {
    this.#decoder.opus = opus;
  }

  /** @param negotiated null before negotiation. */
  take(datagram: Uint8Array, negotiated: RemoteMedia | null): void {
    const header = this.#header;
    if (!parseRtp(datagram, header)) {
      this.#foreign++;
      return;
    }
    this.#payloadTypes.add(header.payloadType);
    const payload = datagram.subarray(header.payloadOffset, header.payloadOffset + header.payloadBytes);
    if (header.payloadType === negotiated?.telephoneEventPayloadType) {
      this.#takeDigit(payload);
      this.#placeOf(header.ssrc, header.sequence);
      return;
    }
    const isNegotiated = header.payloadType === negotiated?.payloadType;
    const codec = isNegotiated ? negotiated.codec : STATIC_CODECS[header.payloadType];
    if (codec === undefined || payload.length > MOST_PAYLOAD_BYTES) {
      this.#foreign++;
      return;
    }
    const nowMs = performance.now();
    if (this.packets > 0) this.#longestGapMs = Math.max(this.#longestGapMs, nowMs - this.#lastArrivalMs);
    this.#lastArrivalMs = nowMs;
    this.packets++;
    const order = this.#placeOf(header.ssrc, header.sequence);
    if (order === null) return;
    this.#decoder.decode(codec, datagram, header);
    const pcm = this.#decoder.narrow().slice(0, this.#decoder.ticks);
    if (this.#kept.length === MAX_PACKETS) this.#kept.shift();
    this.#kept.push({ order, pcm });
  }

  /** Returns everything received so far. */
  received(): ReceivedAudio {
    const ordered = [...this.#kept].sort((a, b) => a.order - b.order);
    const pcm = joined(ordered);
    return {
      packets: this.packets,
      seconds: pcm.length / 8000,
      pcm,
      digits: this.digits,
      continuity: {
        ssrcs: [...this.#ssrcs],
        lost: this.#highest < 0 ? 0 : this.#highest + 1 - this.#firstOrder() - this.#seen.size,
        duplicates: this.#duplicates,
        reordered: this.#reordered,
        payloadTypes: [...this.#payloadTypes],
        longestGapMs: this.#longestGapMs,
        foreign: this.#foreign,
      },
      toneLevels: (frequenciesHz, lastMs) => {
        const part = lastMs === undefined ? pcm : pcm.subarray(Math.max(0, pcm.length - lastMs * 8));
        return frequenciesHz.map((frequencyHz) => toneLevelDbov(part, frequencyHz));
      },
      saveWav: (path) => {
        const bytes = Buffer.from(pcm.buffer, pcm.byteOffset, pcm.byteLength);
        return writeFile(path, Buffer.concat([wavHeader({ channels: 1, sampleRateHz: 8000 }, bytes.length), bytes]));
      },
    };
  }

  #takeDigit(payload: Uint8Array): void {
    if (!parseTelephoneEvent(payload, 0, payload.length, this.#event)) return;
    this.#keys.add(this.#header.ssrc, this.#header.timestamp, this.#event, 8000, performance.now());
  }

  /** Extended sequence number, or null for a duplicate. */
  #placeOf(ssrc: number, sequence: number): number | null {
    if (this.#ssrcs.at(-1) !== ssrc) {
      this.#ssrcs.push(ssrc);
      this.#orderBase = this.#highest + 1 - sequence;
    }
    let order = this.#orderBase + sequence;
    if (this.#highest >= 0) {
      if (order < this.#highest - 32_768) {
        this.#orderBase += 65_536;
        order += 65_536;
      } else if (order > this.#highest + 32_768) {
        order -= 65_536;
      }
    }
    if (this.#seen.has(order)) {
      this.#duplicates++;
      return null;
    }
    this.#seen.add(order);
    if (order < this.#highest) this.#reordered++;
    this.#highest = Math.max(this.#highest, order);
    return order;
  }

  #firstOrder(): number {
    let first = this.#highest;
    for (const order of this.#seen) first = Math.min(first, order);
    return first;
  }
}

function joined(ordered: readonly ReceivedPacket[]): Int16Array {
  const parts: Int16Array[] = [];
  let expected: number | null = null;
  for (const { order, pcm } of ordered) {
    const missing: number = expected === null ? 0 : Math.min(order - expected, LONGEST_FILLED_GAP);
    if (missing > 0) parts.push(new Int16Array(missing * pcm.length));
    parts.push(pcm);
    expected = order + 1;
  }
  const samples = new Int16Array(parts.reduce((total, part) => total + part.length, 0));
  let at = 0;
  for (const part of parts) {
    samples.set(part, at);
    at += part.length;
  }
  return samples;
}
