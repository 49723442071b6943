import { Application, createEncoder, loadLibopus, type OpusEncoderHandle, type SampleRate } from 'libopus-wasm';
import { joinBytes } from './join-bytes.ts';
import { OggPages, oggChecksum } from './ogg-pages.ts';
import type { SpeechEncoder } from './speech-encoder.ts';

/**
 * Opens an encoder for Opus (RFC 6716) in Ogg (RFC 7845), mono or stereo (interleaved), with frames of 20 ms. The
 * length is exact to the sample: pre-skip covers the codec's delay, and the last granule position trims the last frame.
 * @throws RangeError above 48 kHz
 */
export async function openOggOpusEncoder(sampleRateHz: number, channels: 1 | 2 = 1): Promise<SpeechEncoder> {
  const codec = CODECS.find(({ rateHz }) => rateHz >= sampleRateHz);
  if (codec === undefined) throw new RangeError(`Opus has no sample rate of ${sampleRateHz} Hz`);
  const { version } = await loadLibopus();
  const encoder = await createEncoder({
    channels,
    sampleRate: codec.rateHz,
    bitrate: channels * codec.bitsPerSecond,
    // Not Voip, which filters noise of microphones and rooms: synthesised speech has neither.
    application: Application.Audio,
  });
  return new OggOpusEncoder({ encoder, originalRateHz: sampleRateHz, vendor: version });
}

/** Opus's sample rates, with bit rates that are transparent for mono speech. */
const CODECS: readonly { rateHz: SampleRate; bitsPerSecond: number }[] = [
  { rateHz: 8000, bitsPerSecond: 24_000 },
  { rateHz: 12000, bitsPerSecond: 28_000 },
  { rateHz: 16000, bitsPerSecond: 32_000 },
  { rateHz: 24000, bitsPerSecond: 48_000 },
  { rateHz: 48000, bitsPerSecond: 64_000 },
];

/** Unit of granule positions, whatever the encoder's rate. */
const GRANULE_RATE_HZ = 48_000;
const FRAME_GRANULES = GRANULE_RATE_HZ / 50;
const FRAMES_PER_PAGE = 10;
/** Short, so that players start early. */
const FRAMES_IN_FIRST_PAGE = 2;

class OggOpusEncoder implements SpeechEncoder {
  readonly inputRateHz: number;
  readonly #encoder: OpusEncoderHandle;
  readonly #headers: readonly Uint8Array[];
  readonly #preSkip: number;
  readonly #frame: Int16Array;
  #filled = 0;
  #samples = 0;
  #frames = 0;
  #pages: OggPages | null = null;
  #closed = false;

  constructor(options: { encoder: OpusEncoderHandle; originalRateHz: number; vendor: string }) {
    const { encoder, originalRateHz, vendor } = options;
    this.inputRateHz = encoder.sampleRate;
    this.#encoder = encoder;
    this.#frame = new Int16Array(encoder.frameSize * encoder.channels);
    this.#preSkip = (encoder.getLookahead() * GRANULE_RATE_HZ) / encoder.sampleRate;
    this.#headers = [identificationHeader(encoder.channels, this.#preSkip, originalRateHz), commentHeader(vendor)];
  }

  encode(samples: Int16Array): Uint8Array<ArrayBuffer> {
    this.#assertOpen();
    const ready: Uint8Array[] = [];
    const frame = this.#frame;
    for (let taken = 0; taken < samples.length; ) {
      const part = samples.subarray(taken, taken + frame.length - this.#filled);
      frame.set(part, this.#filled);
      this.#filled += part.length;
      taken += part.length;
      if (this.#filled === frame.length) this.#encodeFrame(ready);
    }
    this.#samples += samples.length / this.#encoder.channels;
    return joinBytes(ready);
  }

  finish(): Uint8Array<ArrayBuffer> {
    this.#assertOpen();
    const ready: Uint8Array[] = [];
    const end = this.#preSkip + (this.#samples * GRANULE_RATE_HZ) / this.inputRateHz;
    while (this.#frames * FRAME_GRANULES < end) {
      this.#frame.fill(0, this.#filled);
      this.#encodeFrame(ready);
    }
    ready.push(this.#pages!.page({ last: true, granulePosition: end }));
    this.close();
    return joinBytes(ready);
  }

  close(): void {
    this.#closed = true;
    this.#encoder.free();
  }

  #encodeFrame(ready: Uint8Array[]): void {
    const packet = this.#encoder.encode(this.#frame);
    this.#filled = 0;
    const pages = this.#pages ?? this.#begin(packet, ready);
    const full = this.#frames <= FRAMES_IN_FIRST_PAGE ? FRAMES_IN_FIRST_PAGE : FRAMES_PER_PAGE;
    if (pages.packets === full) ready.push(pages.page());
    this.#frames += 1;
    pages.add(packet, this.#frames * FRAME_GRANULES);
  }

  #begin(firstPacket: Uint8Array, ready: Uint8Array[]): OggPages {
    // Streams in one file need different numbers. A checksum keeps the output reproducible.
    this.#pages = new OggPages(oggChecksum(firstPacket));
    for (const header of this.#headers) {
      this.#pages.add(header, 0);
      ready.push(this.#pages.page());
    }
    return this.#pages;
  }

  #assertOpen(): void {
    if (this.#closed) throw new Error('the encoder is closed');
  }
}

/** RFC 7845 §5.1. */
function identificationHeader(channels: 1 | 2, preSkip: number, originalRateHz: number): Uint8Array {
  const header = Buffer.alloc(19);
  header.write('OpusHead', 'latin1');
  header.writeUInt8(1, 8);
  header.writeUInt8(channels, 9);
  header.writeUInt16LE(preSkip, 10);
  header.writeUInt32LE(originalRateHz, 12);
  return header;
}

/** RFC 7845 §5.2, without comments. */
function commentHeader(vendor: string): Uint8Array {
  const name = Buffer.from(vendor);
  const header = Buffer.alloc(16 + name.length);
  header.write('OpusTags', 'latin1');
  header.writeUInt32LE(name.length, 8);
  name.copy(header, 12);
  return header;
}
