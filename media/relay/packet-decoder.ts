import { CODECS, type Codec } from '../../machines/events.ts';
import { decodeG711 } from '../codecs/g711.ts';
import { G722Decoder } from '../codecs/g722.ts';
import { type OpusDecoder, opusTicks } from '../codecs/opus.ts';
import { meanPower, meanPowerOfG711 } from '../dsp/level.ts';
import { SteadyResampler } from '../dsp/steady-resampler.ts';
import type { PacketAudio } from '../recording/timeline.ts';
import type { RtpHeader } from '../rtp/packet.ts';
import { TickClock } from '../rtp/tick-clock.ts';

type DecodedHeader = Pick<RtpHeader, 'ssrc' | 'sequence' | 'timestamp' | 'payloadOffset' | 'payloadBytes'>;

const NOT_MEASURED = -1;
/** 120 ms, which may be very few octets. */
const MOST_OPUS_TICKS = 960;

/**
 * Decodes a party's packets, each once for all consumers. Except for Opus, an octet is one tick: one sample of G.711,
 * two of G.722 at 16 kHz. A G.722 decoder recovers within milliseconds from a lost or late packet.
 */
export class PacketDecoder implements PacketAudio {
  codec: Codec = 'PCMU';
  ssrc = -1;
  sequence = -1;
  timestamp = 0;
  ticks = 0;
  datagram: Uint8Array = new Uint8Array(0);
  payloadOffset = 0;
  payloadBytes = 0;
  readonly #narrow: Int16Array;
  readonly #wide: Int16Array;
  #power = NOT_MEASURED;
  #isNarrowDone = false;
  #isWideDone = false;
  #decoder: G722Decoder | null = null;
  #halver: SteadyResampler | null = null;
  #doubler: SteadyResampler | null = null;
  readonly #clock = new TickClock();
  #doubledUpTo = -1;

  /** Opus decoder; without one, Opus is silence. */
  opus: OpusDecoder | null = null;

  /** @param mostOctets in a packet */
  constructor(mostOctets: number) {
    this.#narrow = new Int16Array(Math.max(mostOctets, MOST_OPUS_TICKS));
    this.#wide = new Int16Array(2 * this.#narrow.length);
  }

  /** Takes a packet of at most `mostOctets`. An immediate duplicate is not decoded again. Allocates nothing. */
  decode(codec: Codec, datagram: Uint8Array, header: DecodedHeader): void {
    const isSameSource = header.ssrc === this.ssrc && codec === this.codec;
    this.datagram = datagram;
    this.payloadOffset = header.payloadOffset;
    if (isSameSource && header.sequence === this.sequence) return;
    if (!isSameSource) this.#start(codec, header);
    this.sequence = header.sequence;
    this.timestamp = this.#clock.ticksOf(header.timestamp);
    this.payloadBytes = header.payloadBytes;
    this.ticks =
      codec === 'OPUS' ? opusTicks(datagram, header.payloadOffset, header.payloadBytes) : header.payloadBytes;
    this.#power = NOT_MEASURED;
    this.#isNarrowDone = false;
    this.#isWideDone = false;
  }

  get power(): number {
    if (this.#power === NOT_MEASURED) this.#power = this.#measurePower();
    return this.#power;
  }

  narrow(): Int16Array {
    if (this.#isNarrowDone) return this.#narrow;
    this.#isNarrowDone = true;
    const { codec, datagram, payloadOffset, ticks } = this;
    if (codec === 'G722' || codec === 'OPUS') {
      this.#halver ??= new SteadyResampler(16_000, 8000);
      this.#halver.process(this.#decoded(), 2 * ticks, this.#narrow);
    } else decodeG711(codec, datagram, this.#narrow, payloadOffset, payloadOffset + ticks);
    return this.#narrow;
  }

  wide(): Int16Array {
    if (this.#isWideDone) return this.#wide;
    if (this.codec === 'G722' || this.codec === 'OPUS') return this.#decoded();
    this.#isWideDone = true;
    this.#doubler ??= new SteadyResampler(8000, 16_000);
    // Audio from before a gap must not leak past it.
    if (this.timestamp !== this.#doubledUpTo) this.#doubler.reset();
    this.#doubledUpTo = (this.timestamp + this.ticks) >>> 0;
    this.#doubler.process(this.narrow(), this.ticks, this.#wide);
    return this.#wide;
  }

  /** Recovers `ticks` of audio lost before an Opus packet from its redundancy. At 16 kHz if `isWide`. */
  recovered(packet: Uint8Array, ticks: number, isWide: boolean): Int16Array {
    const written = this.opus?.recover(packet, ticks, this.#wide) ?? 0;
    this.#wide.fill(0, written, 2 * ticks);
    this.#isWideDone = false;
    this.#isNarrowDone = false;
    if (isWide) return this.#wide;
    this.#halver ??= new SteadyResampler(16_000, 8000);
    this.#halver.process(this.#wide, 2 * ticks, this.#narrow);
    return this.#narrow;
  }

  #measurePower(): number {
    const { codec, datagram, payloadOffset, ticks } = this;
    if (codec === 'G722' || codec === 'OPUS') return meanPower(this.#decoded(), 2 * ticks);
    return meanPowerOfG711(codec, datagram, payloadOffset, payloadOffset + ticks);
  }

  #decoded(): Int16Array {
    if (this.#isWideDone) return this.#wide;
    this.#isWideDone = true;
    if (this.codec === 'OPUS') {
      const { datagram, payloadOffset, payloadBytes } = this;
      const packet = datagram.subarray(payloadOffset, payloadOffset + payloadBytes);
      const written = this.opus?.decode(packet, this.#wide) ?? 0;
      this.#wide.fill(0, written, 2 * this.ticks);
      return this.#wide;
    }
    this.#decoder ??= new G722Decoder();
    this.#decoder.decode(this.datagram, this.#wide, this.payloadOffset, this.payloadOffset + this.ticks);
    return this.#wide;
  }

  #start(codec: Codec, { ssrc, timestamp }: DecodedHeader): void {
    this.codec = codec;
    this.ssrc = ssrc;
    this.#clock.start(CODECS[codec].clockHz, timestamp);
    this.#decoder?.reset();
    this.#halver?.reset();
    this.#doubledUpTo = -1;
  }
}
