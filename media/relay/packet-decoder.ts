import type { Codec } from '../../machines/events.ts';
import { ALAW_TO_LINEAR, MULAW_TO_LINEAR } from '../codecs/g711.ts';
import { G722Decoder } from '../codecs/g722.ts';
import { RateHalver } from '../dsp/rate-doubling.ts';
import type { RtpHeader } from '../rtp/packet.ts';

/**
 * What a party says, as samples at 8 kHz: one for each octet of its packets, because G.711 has a sample an octet and G.722
 * two at 16 kHz. Packets are decoded in the order of their arrival, each once, whoever needs it. A G.722 decoder that misses
 * a packet, or gets one late, finds its way back within milliseconds.
 */
export class PacketDecoder {
  /** Of the packet that was decoded last. */
  readonly samples: Int16Array;
  readonly #wide: Int16Array;
  readonly #decoder = new G722Decoder();
  readonly #halver = new RateHalver();
  #ssrc = -1;
  #sequence = -1;
  #codec: Codec | null = null;

  /** @param mostOctets in a packet */
  constructor(mostOctets: number) {
    this.samples = new Int16Array(mostOctets);
    this.#wide = new Int16Array(2 * mostOctets);
  }

  /** Decodes a packet of at most `mostOctets` into `samples`, unless it was the last one. Allocates nothing. */
  decode(codec: Codec, datagram: Uint8Array, header: RtpHeader): void {
    const isSameSource = header.ssrc === this.#ssrc && codec === this.#codec;
    if (isSameSource && header.sequence === this.#sequence) return;
    this.#sequence = header.sequence;
    if (!isSameSource) this.#start(codec, header.ssrc);
    const { payloadOffset, payloadBytes } = header;
    if (codec === 'G722') {
      this.#decoder.decode(datagram, this.#wide, payloadOffset, payloadOffset + payloadBytes);
      this.#halver.halve(this.#wide, 2 * payloadBytes, this.samples);
      return;
    }
    const table = codec === 'PCMU' ? MULAW_TO_LINEAR : ALAW_TO_LINEAR;
    for (let i = 0; i < payloadBytes; i++) this.samples[i] = table[datagram[payloadOffset + i]!]!;
  }

  #start(codec: Codec, ssrc: number): void {
    this.#codec = codec;
    this.#ssrc = ssrc;
    this.#decoder.reset();
    this.#halver.reset();
  }
}
