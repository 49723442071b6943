import {
  Application,
  createDecoder,
  createEncoder,
  type OpusDecoderHandle,
  type OpusEncoderHandle,
  Signal,
} from 'libopus-wasm';

/**
 * Opus (RFC 6716) for one leg, with libopus: mono at 16 kHz, as in recordings and recognition. Every Opus decoder
 * accepts any rate and channels (RFC 7587 §3), so peers may differ.
 */

/** Speech of 8 kHz bandwidth, including the redundancy for `OPUS_LOSS_PERCENT`. SDP asks peers for the same. */
const OPUS_BITRATE = 24_000;
/** Loss that forward error correction covers: each frame repeats the previous one at a lower rate. */
const OPUS_LOSS_PERCENT = 10;
/** 0 to 10. More costs CPU out of proportion to speech quality. */
const COMPLEXITY = 3;
const SAMPLES_PER_TICK = 2;
/** Larger packets contain audio, smaller ones mark a pause (RFC 6716 §2.1.9, as in libopus). */
const MOST_PAUSE_BYTES = 2;
/** 120 ms (RFC 6716 §3.2). */
const MOST_TICKS = 960;

export class OpusEncoder {
  readonly #encoder: OpusEncoderHandle;

  private constructor(encoder: OpusEncoderHandle) {
    this.#encoder = encoder;
  }

  static async open(): Promise<OpusEncoder> {
    const encoder = await createEncoder({
      application: Application.Voip,
      bitrate: OPUS_BITRATE,
      channels: 1,
      complexity: COMPLEXITY,
      fec: true,
      packetLossPercent: OPUS_LOSS_PERCENT,
      sampleRate: 16_000,
      signal: Signal.Voice,
    });
    return new OpusEncoder(encoder);
  }

  /** Whether pauses become packets that need not be sent, see `isOpusPause`. Default false. */
  set dtx(isOn: boolean) {
    this.#encoder.setDtx(isOn);
  }

  /** Encodes 20 ms at 16 kHz. */
  encode(frame: Int16Array): Uint8Array {
    return this.#encoder.encode(frame);
  }

  close(): void {
    this.#encoder.free();
  }
}

/** Decodes the packets of one stream, in order. Methods return the samples written; 0 for invalid packets. */
export class OpusDecoder {
  readonly #decoder: OpusDecoderHandle;

  private constructor(decoder: OpusDecoderHandle) {
    this.#decoder = decoder;
  }

  static async open(): Promise<OpusDecoder> {
    return new OpusDecoder(await createDecoder({ channels: 1, sampleRate: 16_000 }));
  }

  decode(packet: Uint8Array, samples: Int16Array): number {
    try {
      return written(this.#decoder.decode(packet), samples);
    } catch {
      return 0;
    }
  }

  /** Recovers `ticks` of 125 us before `packet` from its redundancy, if any (RFC 6716 §2.1.7). */
  recover(packet: Uint8Array, ticks: number, samples: Int16Array): number {
    try {
      return written(this.#decoder.decode(packet, { decodeFec: true, frameSize: SAMPLES_PER_TICK * ticks }), samples);
    } catch {
      return 0;
    }
  }

  /** Conceals `ticks` of 125 us that were lost. */
  conceal(ticks: number, samples: Int16Array): number {
    try {
      return written(this.#decoder.decodePacketLoss(SAMPLES_PER_TICK * ticks), samples);
    } catch {
      return 0;
    }
  }

  close(): void {
    this.#decoder.free();
  }
}

/** Whether a packet of this size only marks a pause. */
export function isOpusPause(payloadBytes: number): boolean {
  return payloadBytes <= MOST_PAUSE_BYTES;
}

/** Duration of a packet in ticks of 125 us, from its first two octets (RFC 6716 §3.1); 0 if invalid. */
export function opusTicks(octets: Uint8Array, from: number, bytes: number): number {
  if (bytes < 1) return 0;
  const toc = octets[from]!;
  const code = toc & 3;
  if (code === 3 && bytes < 2) return 0;
  const frames = code === 0 ? 1 : code < 3 ? 2 : octets[from + 1]! & 0x3f;
  const ticks = frames * frameTicks(toc >> 3);
  return ticks > MOST_TICKS ? 0 : ticks;
}

function frameTicks(config: number): number {
  if (config < 12) return SILK_TICKS[config & 3]!;
  return config < 16 ? 80 << (config & 1) : 20 << (config & 3);
}

/** 10, 20, 40 and 60 ms. */
const SILK_TICKS = [80, 160, 320, 480];

function written(decoded: Int16Array, samples: Int16Array): number {
  const count = Math.min(decoded.length, samples.length);
  for (let i = 0; i < count; i++) samples[i] = decoded[i]!;
  return count;
}
