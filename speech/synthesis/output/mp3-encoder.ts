import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { createEncoder, type WasmMediaEncoder } from 'wasm-media-encoders';
import { joinBytes } from './join-bytes.ts';
import { infoFrame } from './mp3-info-frame.ts';
import type { SpeechEncoder } from './speech-encoder.ts';

/**
 * MP3 by LAME, mono, of constant bit rate. A first frame tells players how much silence LAME puts in front of the
 * sound; that after it, less than a frame, stays.
 * @throws RangeError above 48 kHz
 */
export async function openMp3Encoder(sampleRateHz: number): Promise<SpeechEncoder> {
  const codec = CODECS.find(({ rateHz }) => rateHz >= sampleRateHz);
  if (codec === undefined) throw new RangeError(`MP3 has no sample rate of ${sampleRateHz} Hz`);
  const lame = idle.pop() ?? (await loadLame());
  lame.configure({
    channels: 1,
    sampleRate: codec.rateHz,
    outputSampleRate: codec.rateHz,
    bitrate: codec.kilobitsPerSecond,
  });
  return new Mp3Encoder(lame, codec);
}

/** The rates it has (ISO/IEC 11172-3, 13818-3 and MPEG 2.5), each with what leaves mono speech its whole band. */
const CODECS = [
  { rateHz: 8000, kilobitsPerSecond: 32 },
  { rateHz: 11025, kilobitsPerSecond: 32 },
  { rateHz: 12000, kilobitsPerSecond: 32 },
  { rateHz: 16000, kilobitsPerSecond: 48 },
  { rateHz: 22050, kilobitsPerSecond: 64 },
  { rateHz: 24000, kilobitsPerSecond: 64 },
  { rateHz: 32000, kilobitsPerSecond: 64 },
  { rateHz: 44100, kilobitsPerSecond: 96 },
  { rateHz: 48000, kilobitsPerSecond: 96 },
] as const;

/** What LAME puts in front by itself; decoders know what they add. */
const ENCODER_DELAY_SAMPLES = 576;

/** Less is filled up with silence. */
const LEAST_SAMPLES = 1152;

type Lame = WasmMediaEncoder<'audio/mpeg'>;

/** Each has 16 MB of memory, which only the garbage collector can free: they are used again. */
const idle: Lame[] = [];
const MOST_IDLE = 8;

/** The program, once it was compiled, else its bytes. */
let program: Parameters<typeof createEncoder>[1] | null = null;

async function loadLame(): Promise<Lame> {
  program ??= await readFile(createRequire(import.meta.url).resolve('wasm-media-encoders/wasm/mp3'));
  return await createEncoder('audio/mpeg', program, (compiled) => {
    program = compiled;
  });
}

class Mp3Encoder implements SpeechEncoder {
  readonly inputRateHz: number;
  readonly #codec: (typeof CODECS)[number];
  readonly #block = new Float32Array(1024);
  #lame: Lame | null;
  #samples = 0;
  #begun = false;

  constructor(lame: Lame, codec: (typeof CODECS)[number]) {
    this.inputRateHz = codec.rateHz;
    this.#codec = codec;
    this.#lame = lame;
  }

  encode(samples: Int16Array): Uint8Array<ArrayBuffer> {
    const lame = this.#open();
    const ready: Uint8Array[] = [];
    for (let taken = 0; taken < samples.length; taken += this.#block.length) {
      const block = this.#block.subarray(0, samples.length - taken);
      for (let i = 0; i < block.length; i++) block[i] = samples[taken + i]! / 32768;
      this.#collect(lame.encode([block]), ready);
    }
    this.#samples += samples.length;
    return joinBytes(ready);
  }

  finish(): Uint8Array<ArrayBuffer> {
    const lame = this.#open();
    const ready: Uint8Array[] = [];
    // Players want two frames to believe that it is MP3.
    const missing = LEAST_SAMPLES - this.#samples;
    if (missing > 0) this.#collect(lame.encode([new Float32Array(missing)]), ready);
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
    // They are LAME's own until it is called again.
    ready.push(bytes.slice());
  }

  #open(): Lame {
    if (this.#lame === null) throw new Error('the encoder is closed');
    return this.#lame;
  }
}
