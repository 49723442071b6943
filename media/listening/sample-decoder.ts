import type { AudioFormat } from '../../machines/utterances.ts';
import { ALAW_TO_LINEAR, MULAW_TO_LINEAR } from '../codecs/g711.ts';

/** Decodes the bytes of a stream to samples in 16-bit scale. Chunks may end anywhere. */
export class SampleDecoder {
  readonly #table: Int16Array | null;
  readonly #frameBytes: number;
  readonly #channels: 1 | 2;
  readonly #isMixed: boolean;
  /** A frame whose last bytes are missing. */
  readonly #cut = new Uint8Array(4);
  #cutBytes = 0;

  constructor(format: AudioFormat, channels: 'mixed' | 'separate') {
    this.#table = { linear16: null, mulaw: MULAW_TO_LINEAR, alaw: ALAW_TO_LINEAR }[format.encoding];
    this.#channels = format.channels;
    this.#frameBytes = (this.#table === null ? 2 : 1) * format.channels;
    this.#isMixed = channels === 'mixed';
  }

  /** Number of bytes that yield at most `samples` per channel, whatever is left from before. */
  bytesFor(samples: number): number {
    return samples * this.#frameBytes - (this.#frameBytes - 1);
  }

  /** Writes to one output for mono or mixed channels, else to two. Returns the samples of each. */
  decode(bytes: Uint8Array, outputs: readonly Float32Array[]): number {
    const frameBytes = this.#frameBytes;
    let at = 0;
    let written = 0;
    if (this.#cutBytes > 0) {
      while (this.#cutBytes < frameBytes && at < bytes.length) this.#cut[this.#cutBytes++] = bytes[at++]!;
      if (this.#cutBytes < frameBytes) return 0;
      this.#decodeFrames(this.#cut, 0, 1, outputs, 0);
      this.#cutBytes = 0;
      written = 1;
    }
    const frames = Math.floor((bytes.length - at) / frameBytes);
    this.#decodeFrames(bytes, at, frames, outputs, written);
    for (at += frames * frameBytes; at < bytes.length; at++) this.#cut[this.#cutBytes++] = bytes[at]!;
    return written + frames;
  }

  #decodeFrames(bytes: Uint8Array, from: number, frames: number, outputs: readonly Float32Array[], at: number): void {
    const [left, right] = outputs as [Float32Array, Float32Array];
    const table = this.#table;
    if (this.#channels === 1) {
      if (table !== null) for (let i = 0; i < frames; i++) left[at + i] = table[bytes[from + i]!]!;
      else for (let i = 0; i < frames; i++) left[at + i] = littleEndian16(bytes, from + 2 * i);
      return;
    }
    for (let i = 0; i < frames; i++) {
      const offset = from + i * this.#frameBytes;
      const first = table === null ? littleEndian16(bytes, offset) : table[bytes[offset]!]!;
      const second = table === null ? littleEndian16(bytes, offset + 2) : table[bytes[offset + 1]!]!;
      if (this.#isMixed) {
        left[at + i] = (first + second) / 2;
      } else {
        left[at + i] = first;
        right[at + i] = second;
      }
    }
  }
}

function littleEndian16(bytes: Uint8Array, at: number): number {
  return ((bytes[at]! | (bytes[at + 1]! << 8)) << 16) >> 16;
}
