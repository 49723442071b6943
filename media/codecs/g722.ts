import { SubBand } from './g722-sub-band.ts';

/**
 * ITU-T G.722: 7 kHz audio in 64 kbit/s. Mirror filters split 16 kHz into two bands of 8 kHz, each coded with ADPCM
 * (`g722-sub-band.ts`). An octet is two 16-bit samples: 6 bits of the lower band below 2 of the higher. Bit exact,
 * after the block diagrams of clauses 5 and 6; tests compare it with ffmpeg and an ITU test sequence (Appendix II). In
 * RTP its payload type is 9 and its clock 8 kHz (RFC 3551 §4.5.2), so an octet is one tick, as in G.711.
 */

export const G722_SAMPLE_RATE_HZ = 16_000;

/** Audio bits of each octet: mode 1 uses all 8 (64 kbit/s), mode 2 leaves the lowest to data, mode 3 the lowest two. */
export type G722Mode = 1 | 2 | 3;

const TAPS = 24;
/** Samples of the previous block that a filter needs. */
const HISTORY = TAPS - 2;
/** Octets per filter pass: 20 ms. */
const BLOCK_OCTETS = 160;

export class G722Encoder {
  readonly #low = new SubBand(LOW_STEP);
  readonly #high = new SubBand(HIGH_STEP);
  readonly #window = new Int32Array(HISTORY + 2 * BLOCK_OCTETS);

  /**
   * Encodes at most `most` pairs of samples, up to the shorter buffer. Returns the number of octets, written from `at`.
   * Allocates nothing.
   */
  encode(samples: Int16Array, octets: Uint8Array, at = 0, most: number = samples.length >> 1): number {
    const count = Math.min(most, samples.length >> 1, octets.length - at);
    for (let done = 0; done < count; done += BLOCK_OCTETS) {
      this.#encodeBlock(samples, done, octets, at, Math.min(BLOCK_OCTETS, count - done));
    }
    return Math.max(0, count);
  }

  reset(): void {
    this.#low.reset();
    this.#high.reset();
    this.#window.fill(0);
  }

  #encodeBlock(samples: Int16Array, from: number, octets: Uint8Array, at: number, count: number): void {
    const window = this.#window;
    for (let i = 0; i < 2 * count; i++) window[HISTORY + i] = samples[2 * from + i]!;
    for (let pair = 0; pair < count; pair++) {
      const at0 = 2 * pair;
      const a = filtered(window, at0 + 23, -2);
      const b = filtered(window, at0, 2);
      const low = this.#low.encodeLow(limited((a + b) >> 14));
      const high = this.#high.encodeHigh(limited((a - b) >> 14));
      octets[at + from + pair] = (high << 6) | low;
    }
    window.copyWithin(0, 2 * count, 2 * count + HISTORY);
  }
}

export class G722Decoder {
  readonly #low = new SubBand(LOW_STEP);
  readonly #high = new SubBand(HIGH_STEP);
  readonly #window = new Int32Array(HISTORY + 2 * BLOCK_OCTETS);
  readonly #mode: G722Mode;

  constructor(mode: G722Mode = 1) {
    this.#mode = mode;
  }

  /**
   * Decodes octets `from`..`to`, two samples each, up to the room in `samples`. Returns the number of samples.
   * Allocates nothing.
   */
  decode(octets: Uint8Array, samples: Int16Array, from = 0, to: number = octets.length): number {
    const count = Math.min(to - from, samples.length >> 1);
    for (let done = 0; done < count; done += BLOCK_OCTETS) {
      this.#decodeBlock(octets, from, samples, done, Math.min(BLOCK_OCTETS, count - done));
    }
    return 2 * Math.max(0, count);
  }

  reset(): void {
    this.#low.reset();
    this.#high.reset();
    this.#window.fill(0);
  }

  #decodeBlock(octets: Uint8Array, from: number, samples: Int16Array, done: number, count: number): void {
    const window = this.#window;
    for (let pair = 0; pair < count; pair++) {
      const octet = octets[from + done + pair]!;
      const low = limited(this.#low.decodeLow(octet & 0x3f, this.#mode));
      const high = limited(this.#high.decodeHigh(octet >> 6));
      window[HISTORY + 2 * pair] = low + high;
      window[HISTORY + 2 * pair + 1] = low - high;
    }
    for (let pair = 0; pair < count; pair++) {
      const first = filtered(window, 2 * pair + 23, -2);
      const second = filtered(window, 2 * pair, 2);
      samples[2 * (done + pair)] = saturated(first >> 11);
      samples[2 * (done + pair) + 1] = saturated(second >> 11);
    }
    window.copyWithin(0, 2 * count, 2 * count + HISTORY);
  }
}

/**
 * Every second coefficient of the mirror filter. It is symmetric: a negative stride from the newest sample yields the
 * others.
 */
function filtered(window: Int32Array, at: number, stride: 2 | -2): number {
  return (
    3 * window[at]! -
    11 * window[at + stride]! +
    12 * window[at + 2 * stride]! +
    32 * window[at + 3 * stride]! -
    210 * window[at + 4 * stride]! +
    951 * window[at + 5 * stride]! +
    3876 * window[at + 6 * stride]! -
    805 * window[at + 7 * stride]! +
    362 * window[at + 8 * stride]! -
    156 * window[at + 9 * stride]! +
    53 * window[at + 10 * stride]! -
    11 * window[at + 11 * stride]!
  );
}

/** Initial quantiser steps, in 1/8 of the smallest (clause 3.5, Table 17). */
const LOW_STEP = 32;
const HIGH_STEP = 8;

/** LIMIT and LOWT/HIGHT: a band has 15 bits. */
function limited(value: number): number {
  return value > 16_383 ? 16_383 : Math.max(value, -16_384);
}

function saturated(value: number): number {
  return value > 32_767 ? 32_767 : Math.max(value, -32_768);
}
