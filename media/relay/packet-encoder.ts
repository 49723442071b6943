import type { Codec } from '../../machines/events.ts';
import { LINEAR_TO_ALAW, LINEAR_TO_MULAW } from '../codecs/g711.ts';
import { G722Encoder } from '../codecs/g722.ts';
import { RateDoubler } from '../dsp/rate-doubling.ts';

/** Encodes samples at 8 kHz for one party, an octet each. A G.722 encoder keeps its state from packet to packet. */
export class PacketEncoder {
  readonly #wide: Int16Array;
  readonly #encoder = new G722Encoder();
  readonly #doubler = new RateDoubler();
  #codec: Codec | null = null;

  /** @param mostOctets in a packet */
  constructor(mostOctets: number) {
    this.#wide = new Int16Array(2 * mostOctets);
  }

  /** Encodes the first `count` samples to `octets`, from `at` on. Allocates nothing. */
  encode(codec: Codec, samples: Int16Array, count: number, octets: Uint8Array, at: number): void {
    if (codec !== this.#codec) this.#start(codec);
    if (codec === 'G722') {
      this.#doubler.double(samples, count, this.#wide);
      this.#encoder.encode(this.#wide, octets, at, count);
      return;
    }
    const table = codec === 'PCMU' ? LINEAR_TO_MULAW : LINEAR_TO_ALAW;
    for (let i = 0; i < count; i++) octets[at + i] = table[samples[i]! & 0xffff]!;
  }

  #start(codec: Codec): void {
    this.#codec = codec;
    this.#encoder.reset();
    this.#doubler.reset();
  }
}
