import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { createEncoder, type WasmMediaEncoder } from 'wasm-media-encoders';
import { joinBytes } from './join-bytes.ts';
import { infoFrame } from './mp3-info-frame.ts';
import type { SpeechEncoder } from './speech-encoder.ts';

/**
 * Opens an MP3 encoder (LAME), mono or stereo (interleaved), with constant bit rate. The first frame reports how much
 * silence LAME inserts before the sound, so that players skip it. The padding at the end, less than a frame, stays.
 * @throws RangeError above 48 kHz
 */
export async function openMp3Encoder(sampleRateHz: number, channels: 1 | 2 = 1): Promise<SpeechEncoder> {
  const codec = CODECS.find(({ rateHz }) => rateHz >= sampleRateHz);
  if (codec === undefined) throw new RangeError(`MP3 has no sample rate of ${sampleRateHz} Hz`);
  const lame = idle.pop() ?? (await loadLame());
  const kilobitsPerSecond = codec.kilobitsPerSecond[channels];
  lame.configure({
    channels,
    sampleRate: codec.rateHz,
    outputSampleRate: codec.rateHz,
    bitrate: kilobitsPerSecond,
  });
  return new Mp3Encoder(lame, { rateHz: codec.rateHz, kilobitsPerSecond, channels });
}

/** MP3's sample rates (ISO/IEC 11172-3, 13818-3 and MPEG 2.5), with bit rates that keep the whole band of speech. */
const CODECS = [
  { rateHz: 8000, kilobitsPerSecond: { 1: 32, 2: 64 } },
  { rateHz: 11025, kilobitsPerSecond: { 1: 32, 2: 64 } },
  { rateHz: 12000, kilobitsPerSecond: { 1: 32, 2: 64 } },
  { rateHz: 16000, kilobitsPerSecond: { 1: 48, 2: 96 } },
  { rateHz: 22050, kilobitsPerSecond: { 1: 64, 2: 128 } },
  { rateHz: 24000, kilobitsPerSecond: { 1: 64, 2: 128 } },
  { rateHz: 32000, kilobitsPerSecond: { 1: 64, 2: 128 } },
  { rateHz: 44100, kilobitsPerSecond: { 1: 96, 2: 192 } },
  { rateHz: 48000, kilobitsPerSecond: { 1: 96, 2: 192 } },
] as const;

interface Codec {
  rateHz: number;
  kilobitsPerSecond: number;
  channels: 1 | 2;
}

/** LAME's own delay. Decoders know theirs. */
const ENCODER_DELAY_SAMPLES = 576;

const BLOCK_SAMPLES = 1024;

/** Shorter audio is padded with silence. */
const LEAST_SAMPLES = 1152;

type Lame = WasmMediaEncoder<'audio/mpeg'>;

/** Reused, because each has 16 MB of memory that only the garbage collector can free. */
const idle: Lame[] = [];
const MOST_IDLE = 8;

/** The compiled program or, at first, its bytes. */
let program: Parameters<typeof createEncoder>[1] | null = null;

async function loadLame(): Promise<Lame> {
  program ??= await readFile(createRequire(import.meta.url).resolve('wasm-media-encoders/wasm/mp3'));
  return await createEncoder('audio/mpeg', program, (compiled) => {
    program = compiled;
  });
}

class Mp3Encoder implements SpeechEncoder {
  readonly inputRateHz: number;
  readonly #codec: Codec;
  readonly #blocks: Float32Array[];
  #lame: Lame | null;
  #samples = 0;
  #begun = false;

  constructor(lame: Lame, codec: Codec) {
    this.inputRateHz = codec.rateHz;
    this.#codec = codec;
    this.#blocks = Array.from({ length: codec.channels }, () => new Float32Array(BLOCK_SAMPLES));
    this.#lame = lame;
  }

  encode(samples: Int16Array): Uint8Array<ArrayBuffer> {
    const lame = this.#open();
    const ready: Uint8Array[] = [];
    const { channels } = this.#codec;
    const frames = samples.length / channels;
    for (let taken = 0; taken < frames; taken += BLOCK_SAMPLES) {
      const blocks = this.#blocks.map((block) => block.subarray(0, frames - taken));
      for (const [channel, block] of blocks.entries()) {
        for (let i = 0; i < block.length; i++) block[i] = samples[(taken + i) * channels + channel]! / 32768;
      }
      this.#collect(lame.encode(blocks), ready);
    }
    this.#samples += frames;
    return joinBytes(ready);
  }

  finish(): Uint8Array<ArrayBuffer> {
    const lame = this.#open();
    const ready: Uint8Array[] = [];
    // Players need two frames to detect MP3.
    const missing = LEAST_SAMPLES - this.#samples;
    if (missing > 0) this.#collect(lame.encode(this.#blocks.map(() => new Float32Array(missing))), ready);
    this.#collect(lame.finalize(), ready);
    this.close();
    return joinBytes(ready);
  }

  close(): void {
    if (this.#lame !== null && idle.length < MOST_IDLE) idle.push(this.#lame);
    this.#lame = null;
  }

  #collect(bytes: Uint8Array, ready: Uint8Array[]): void {
    if (bytes.length === 0) return;
    if (!this.#begun) ready.push(infoFrame({ ...this.#codec, delaySamples: ENCODER_DELAY_SAMPLES }));
    this.#begun = true;
    // A copy, because LAME reuses the memory.
    ready.push(bytes.slice());
  }

  #open(): Lame {
    if (this.#lame === null) throw new Error('the encoder is closed');
    return this.#lame;
  }
}
