import type { Codec } from '../../machines/events.ts';
import { encodeG711 } from '../codecs/g711.ts';
import { G722Encoder } from '../codecs/g722.ts';
import type { OpusEncoder } from '../codecs/opus.ts';
import { SteadyResampler } from '../dsp/steady-resampler.ts';
import { FRAME_SAMPLES } from '../dsp/tones.ts';

const NOTHING = new Uint8Array(0);

/**
 * Encodes samples at 8 or 16 kHz for one party, one octet per 125 us. G.722 and the resampling filters keep state
 * between packets.
 */
export class PacketEncoder {
  /** Samples at the codec's rate, if that differs. */
  readonly #converted: Int16Array;
  readonly #encoder = new G722Encoder();
  readonly #doubler = new SteadyResampler(8000, 16_000);
  #halver: SteadyResampler | null = null;
  #codec: Codec | null = null;
  /** Opus encoder; without one, Opus has no output. */
  opus: OpusEncoder | null = null;

  /** @param mostOctets in a packet */
  constructor(mostOctets: number) {
    this.#converted = new Int16Array(2 * mostOctets);
  }

  /** Encodes the first `count` samples at 8 kHz into `octets`, starting at `at`. Allocates nothing. */
  encode(codec: Codec, samples: Int16Array, count: number, octets: Uint8Array, at: number): void {
    if (codec !== this.#codec) this.#start(codec);
    if (codec === 'G722') {
      this.#doubler.process(samples, count, this.#converted);
      this.#encoder.encode(this.#converted, octets, at, count);
    } else if (codec !== 'OPUS') encodeG711(codec, samples, octets, at, count);
  }

  /** As `encode`, for an even number of samples at 16 kHz. Allocates only a filter, once. */
  encodeWide(codec: Codec, samples: Int16Array, count: number, octets: Uint8Array, at: number): void {
    if (codec !== this.#codec) this.#start(codec);
    if (codec === 'G722') {
      this.#encoder.encode(samples, octets, at, count >> 1);
      return;
    }
    if (codec === 'OPUS') return;
    this.#halver ??= new SteadyResampler(16_000, 8000);
    this.#halver.process(samples, count, this.#converted);
    encodeG711(codec, this.#converted, octets, at, count >> 1);
  }

  /** Encodes 20 ms, at 16 kHz if `isWide`, else at 8 kHz. */
  encodeOpus(samples: Int16Array, isWide = false): Uint8Array {
    if (this.#codec !== 'OPUS') this.#start('OPUS');
    if (!isWide) this.#doubler.process(samples, FRAME_SAMPLES, this.#converted);
    const frame = isWide ? samples : this.#converted;
    return this.opus?.encode(frame.subarray(0, 2 * FRAME_SAMPLES)) ?? NOTHING;
  }

  #start(codec: Codec): void {
    this.#codec = codec;
    this.#encoder.reset();
    this.#doubler.reset();
    this.#halver?.reset();
  }
}
