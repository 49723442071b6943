import type { Codec } from '../../machines/events.ts';
import { encodeG711 } from '../codecs/g711.ts';
import { G722Encoder } from '../codecs/g722.ts';
import { SteadyResampler } from '../dsp/steady-resampler.ts';

/** Encodes samples at 8 kHz for one party, an octet each. A G.722 encoder keeps its state from packet to packet. */
export class PacketEncoder {
  readonly #wide: Int16Array;
  readonly #encoder = new G722Encoder();
  readonly #doubler = new SteadyResampler(8000, 16_000);
  #codec: Codec | null = null;

  /** @param mostOctets in a packet */
  constructor(mostOctets: number) {
    this.#wide = new Int16Array(2 * mostOctets);
  }

  /** Encodes the first `count` samples to `octets`, from `at` on. Allocates nothing. */
  encode(codec: Codec, samples: Int16Array, count: number, octets: Uint8Array, at: number): void {
    if (codec !== this.#codec) this.#start(codec);
    if (codec === 'G722') {
      this.#doubler.process(samples, count, this.#wide);
      this.#encoder.encode(this.#wide, octets, at, count);
    } else encodeG711(codec, samples, octets, at, count);
  }

  #start(codec: Codec): void {
    this.#codec = codec;
    this.#encoder.reset();
    this.#doubler.reset();
  }
}
