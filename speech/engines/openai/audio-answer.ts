import { endianness } from 'node:os';
import { SynthesizerError } from '../../synthesizer.ts';

/**
 * Samples of an answer as its bytes arrive: bare 16-bit PCM, or a WAV file of it (RIFF, "Multimedia Programming
 * Interface" 1991), whichever the server chose to send. Several channels become one.
 */
export class AudioAnswer {
  #sampleRateHz: number;
  #channels = 1;
  /** Null until it is known whether there is a header and all of it is there. */
  #isWav: boolean | null = null;
  /** Bytes that make no header, or no sample of all channels, yet. */
  #rest: Buffer = Buffer.alloc(0);
  /** Of the WAV file's samples; Infinity where it does not say. */
  #missingBytes = Number.POSITIVE_INFINITY;

  /** @throws SynthesizerError when it is of another kind */
  constructor({ contentType, usualRateHz }: { contentType: string | null; usualRateHz: number }) {
    const type = (contentType ?? '')
      .replace(/;[\s\S]*$/, '')
      .trim()
      .toLowerCase();
    if (!CONTENT_TYPES.has(type)) throw notAudio(`has the type ${/^[\w.+-]+\/[\w.+-]+$/.test(type) ? type : '?'}`);
    const told = /;\s*rate="?(\d{4,6})\b/i.exec(contentType ?? '')?.[1];
    this.#sampleRateHz = told === undefined ? usualRateHz : requireRate(Number(told));
  }

  /** Of the samples that `push` gave, or is about to give. */
  get sampleRateHz(): number {
    return this.#sampleRateHz;
  }

  /** What is whole by now; may be empty. @throws SynthesizerError when it is no audio */
  push(bytes: Uint8Array): Int16Array<ArrayBuffer> {
    this.#rest = this.#rest.byteLength === 0 ? Buffer.from(bytes) : Buffer.concat([this.#rest, bytes]);
    if (this.#isWav === null && !this.#readStart()) return new Int16Array(0);
    return this.#takeSamples();
  }

  /** What is left when there is no more. @throws SynthesizerError when some is missing */
  end(): Int16Array<ArrayBuffer> {
    // Too short to begin as a WAV file does.
    if (this.#isWav === null && this.#rest.byteLength < START_BYTES) this.#isWav = false;
    if (this.#isWav === null) throw notAudio('ends in the middle of its header');
    const samples = this.#takeSamples();
    if (this.#missingBytes > 0 && this.#missingBytes !== Number.POSITIVE_INFINITY) throw notAudio('ends too early');
    return samples;
  }

  #readStart(): boolean {
    if (this.#rest.byteLength < START_BYTES) return false;
    const start = this.#rest.toString('latin1', 0, START_BYTES);
    if (OTHER_FORMATS.test(start)) throw notAudio('is neither PCM nor WAV');
    if (!start.startsWith('RIFF') || !start.endsWith('WAVE')) this.#isWav = false;
    else if (!this.#readHeader()) return false;
    return true;
  }

  #readHeader(): boolean {
    const bytes = this.#rest;
    let hasFormat = false;
    for (let at = START_BYTES; at + 8 <= bytes.byteLength; ) {
      const name = bytes.toString('latin1', at, at + 4);
      const length = bytes.readUInt32LE(at + 4);
      if (name === 'data') {
        if (!hasFormat) throw notAudio('is a WAV file that does not say what it is');
        this.#isWav = true;
        this.#missingBytes = isUnknownLength(length) ? Number.POSITIVE_INFINITY : length;
        this.#rest = bytes.subarray(at + 8);
        return true;
      }
      if (length > MOST_HEADER_BYTES) throw notAudio('is a WAV file with an endless header');
      const next = at + 8 + length + (length % 2);
      if (next > bytes.byteLength) break;
      if (name === 'fmt ') {
        this.#readFormat(bytes.subarray(at + 8, at + 8 + length));
        hasFormat = true;
      }
      at = next;
    }
    if (bytes.byteLength > MOST_HEADER_BYTES) throw notAudio('is a WAV file with an endless header');
    return false;
  }

  #readFormat(format: Buffer): void {
    const isPcm = format.byteLength >= 16 && PCM_FORMATS.has(format.readUInt16LE(0)) && format.readUInt16LE(14) === 16;
    const channels = isPcm ? format.readUInt16LE(2) : 0;
    if (channels < 1 || channels > 8) throw notAudio('is a WAV file of another kind than 16-bit PCM');
    this.#channels = channels;
    this.#sampleRateHz = requireRate(format.readUInt32LE(4));
  }

  #takeSamples(): Int16Array<ArrayBuffer> {
    const blockBytes = 2 * this.#channels;
    // Behind the samples of a WAV file other things may follow.
    const usable = Math.min(this.#rest.byteLength, this.#missingBytes);
    const count = Math.floor(usable / blockBytes);
    const interleaved = new Int16Array(count * this.#channels);
    const bytes = Buffer.from(interleaved.buffer);
    this.#rest.copy(bytes, 0, 0, count * blockBytes);
    if (endianness() === 'BE') bytes.swap16();
    this.#missingBytes -= count * blockBytes;
    this.#rest = this.#missingBytes < blockBytes ? Buffer.alloc(0) : this.#rest.subarray(count * blockBytes);
    return this.#channels === 1 ? interleaved : mixed(interleaved, this.#channels);
  }
}

/** Those of PCM and WAV, and those of servers that do not know what they send. */
const CONTENT_TYPES: ReadonlySet<string> = new Set([
  ...['audio/pcm', 'audio/x-pcm', 'audio/raw', 'audio/x-raw'],
  ...['audio/wav', 'audio/x-wav', 'audio/wave', 'audio/vnd.wave'],
  ...['application/octet-stream', 'binary/octet-stream', ''],
]);
/** Of RIFF, its length and WAVE. */
const START_BYTES = 12;
/** MP3 with a tag, Ogg and FLAC; and what begins like a page or JSON. */
const OTHER_FORMATS = /^(?:ID3|OggS|fLaC|<!doctype|<html|\{"error)/i;
/** PCM, and the extensible format, which is PCM unless it has other sample sizes. */
const PCM_FORMATS: ReadonlySet<number> = new Set([1, 0xfffe]);
const MOST_HEADER_BYTES = 65_536;

/** What servers write that do not know yet how long it will be. */
function isUnknownLength(length: number): boolean {
  return length === 0 || length >= 0x7fff_0000;
}

function requireRate(rateHz: number): number {
  if (rateHz < 8000 || rateHz > 48_000) throw notAudio(`has ${rateHz} samples per second`);
  return rateHz;
}

function mixed(interleaved: Int16Array, channels: number): Int16Array<ArrayBuffer> {
  const samples = new Int16Array(interleaved.length / channels);
  for (let at = 0; at < samples.length; at++) {
    let sum = 0;
    for (let channel = 0; channel < channels; channel++) sum += interleaved[at * channels + channel]!;
    samples[at] = Math.round(sum / channels);
  }
  return samples;
}

function notAudio(how: string): SynthesizerError {
  return new SynthesizerError('unavailable', `the speech server's answer cannot be played: it ${how}`);
}
