import { endianness } from 'node:os';
import { SynthesizerError } from '../../synthesizer.ts';

/**
 * Decodes a streamed response: bare 16-bit PCM, or a WAV file with it (RIFF, "Multimedia Programming Interface" 1991),
 * whichever the server sends. Mixes channels down to one.
 */
export class AudioAnswer {
  #sampleRateHz: number;
  #channels = 1;
  /** Null until the header is complete or known to be absent. */
  #isWav: boolean | null = null;
  /** Bytes of an incomplete header or sample. */
  #rest: Buffer = Buffer.alloc(0);
  /** Remaining bytes of the WAV file's samples; Infinity if unknown. */
  #missingBytes = Number.POSITIVE_INFINITY;

  /** @throws SynthesizerError for an unsupported type */
  constructor({ contentType, usualRateHz }: { contentType: string | null; usualRateHz: number }) {
    const type = (contentType ?? '')
      .replace(/;[\s\S]*$/, '')
      .trim()
      .toLowerCase();
    if (!CONTENT_TYPES.has(type)) throw notAudio(`has the type ${/^[\w.+-]+\/[\w.+-]+$/.test(type) ? type : '?'}`);
    const declared = /;\s*rate="?(\d{4,6})\b/i.exec(contentType ?? '')?.[1];
    this.#sampleRateHz = declared === undefined ? usualRateHz : requireRate(Number(declared));
  }

  /** Rate of the samples that `push` returns. */
  get sampleRateHz(): number {
    return this.#sampleRateHz;
  }

  /** Returns the complete samples; may be empty. @throws SynthesizerError if it is not audio */
  push(bytes: Uint8Array): Int16Array<ArrayBuffer> {
    this.#rest = this.#rest.byteLength === 0 ? Buffer.from(bytes) : Buffer.concat([this.#rest, bytes]);
    if (this.#isWav === null && !this.#readStart()) return new Int16Array(0);
    return this.#takeSamples();
  }

  /** Returns the rest at the end. @throws SynthesizerError if the response is incomplete */
  end(): Int16Array<ArrayBuffer> {
    // Too short for a WAV header.
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
    // Other chunks may follow the samples of a WAV file.
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

/** Types of PCM and WAV, and of servers that set no proper type. */
const CONTENT_TYPES: ReadonlySet<string> = new Set([
  ...['audio/pcm', 'audio/x-pcm', 'audio/raw', 'audio/x-raw'],
  ...['audio/wav', 'audio/x-wav', 'audio/wave', 'audio/vnd.wave'],
  ...['application/octet-stream', 'binary/octet-stream', ''],
]);
/** `RIFF`, its length and `WAVE`. */
const START_BYTES = 12;
/** MP3 with a tag, Ogg, FLAC, HTML and JSON. */
const OTHER_FORMATS = /^(?:ID3|OggS|fLaC|<!doctype|<html|\{"error)/i;
/** PCM, and the extensible format, which is PCM unless it has other sample sizes. */
const PCM_FORMATS: ReadonlySet<number> = new Set([1, 0xfffe]);
const MOST_HEADER_BYTES = 65_536;

/** Servers write these when the length is not known yet. */
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
