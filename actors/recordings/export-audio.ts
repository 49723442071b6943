import { createReadStream } from 'node:fs';
import { open, rm, stat } from 'node:fs/promises';
import { buffer } from 'node:stream/consumers';
import { withWavLengths } from '../../media/recording/sealed-wav.ts';
import { parseWavHeader, WAV_HEADER_BYTES, type WavFormat, wavHeader } from '../../media/wav.ts';
import { damaged, type FileSeal } from '../../runtime/sealed-file/format.ts';
import { openSealedFile } from '../../runtime/sealed-file/reader.ts';
import { SealedFileWriter } from '../../runtime/sealed-file/writer.ts';
import { openMp3Encoder } from '../../speech/synthesis/output/mp3-encoder.ts';
import { openOggOpusEncoder } from '../../speech/synthesis/output/ogg-opus-encoder.ts';
import { PeaksWriter } from './peaks.ts';

export interface ExportRequest {
  /** The original recording: a WAV file of this project, sealed if `sourceSeal` is set. */
  sourcePath: string;
  sourceSeal: FileSeal | null;
  targetPath: string;
  /** Null: do not encrypt the target. */
  targetSeal: FileSeal | null;
  form: ExportForm;
}

export type ExportForm = { format: 'wav' | 'mp3' | 'opus'; channels: 'mono' | 'stereo' } | { format: 'peaks' };

/**
 * Converts a recording as a stream, so memory does not grow with its length. Returns the size of the target's
 * plaintext. Leaves no target behind on failure.
 * @throws SealedFileError; the file system's error
 */
export async function exportAudio(request: ExportRequest): Promise<number> {
  const source = await openSource(request);
  const target = await openTarget(request);
  try {
    const encoder = await openEncoder(request.form, source);
    try {
      await target.append(encoder.begin());
      for await (const samples of source.blocks()) await target.append(encoder.encode(samples));
      await target.append(encoder.finish());
    } finally {
      encoder.close();
    }
    await target.finish();
    return target.bytes();
  } catch (error) {
    await target.abandon().catch(() => {});
    await rm(request.targetPath, { force: true });
    throw error;
  }
}

interface Source extends WavFormat {
  /** Samples per channel. */
  frames: number;
  /** Interleaved. */
  blocks(): AsyncGenerator<Int16Array>;
}

/** A multiple of every frame size; encodes about a quarter of a second between reads. */
const BLOCK_BYTES = 8192;

async function openSource({ sourcePath, sourceSeal }: ExportRequest): Promise<Source> {
  const { size } = await stat(sourcePath);
  const file = {
    sizeBytes: size,
    read: async (range: { start: number; end: number }) => createReadStream(sourcePath, range),
  };
  const reader = sourceSeal === null ? file : withWavLengths(await openSealedFile(file, () => sourceSeal));
  const header = await buffer(await reader.read({ start: 0, end: WAV_HEADER_BYTES - 1 }));
  const format = parseWavHeader(header);
  if (format === null || format.channels > 2) throw damaged('The recording is not a WAV file of this platform.');
  const frameBytes = 2 * format.channels;
  const frames = Math.floor((reader.sizeBytes - WAV_HEADER_BYTES) / frameBytes);
  return {
    ...format,
    frames,
    async *blocks() {
      if (frames === 0) return;
      const end = WAV_HEADER_BYTES + frames * frameBytes - 1;
      let rest = Buffer.alloc(0);
      for await (const part of await reader.read({ start: WAV_HEADER_BYTES, end })) {
        rest = Buffer.concat([rest, part]);
        for (; rest.length >= BLOCK_BYTES; rest = rest.subarray(BLOCK_BYTES))
          yield samplesOf(rest.subarray(0, BLOCK_BYTES));
      }
      if (rest.length > 0) yield samplesOf(rest);
    },
  };
}

interface Target {
  append(bytes: Uint8Array | string): Promise<void>;
  bytes(): number;
  finish(): Promise<void>;
  abandon(): Promise<void>;
}

async function openTarget({ targetPath, targetSeal }: ExportRequest): Promise<Target> {
  const toBytes = (bytes: Uint8Array | string) => (typeof bytes === 'string' ? Buffer.from(bytes) : bytes);
  if (targetSeal !== null) {
    const file = await SealedFileWriter.open(targetPath, targetSeal);
    return {
      append: (bytes) => file.append(toBytes(bytes)),
      bytes: () => file.bytes,
      finish: () => file.finish(),
      abandon: () => file.abandon(),
    };
  }
  const file = await open(targetPath, 'w', 0o600);
  let bytes = 0;
  return {
    async append(more) {
      const part = toBytes(more);
      await file.writeFile(part);
      bytes += part.length;
    },
    bytes: () => bytes,
    finish: () => file.close(),
    abandon: () => file.close(),
  };
}

interface Encoder {
  begin(): Uint8Array | string;
  encode(samples: Int16Array): Uint8Array | string;
  finish(): Uint8Array | string;
  close(): void;
}

async function openEncoder(form: ExportForm, source: Source): Promise<Encoder> {
  if (form.format === 'peaks') {
    const peaks = new PeaksWriter(source);
    return {
      begin: () => peaks.begin(),
      encode: (samples) => peaks.add(samples),
      finish: () => peaks.end(),
      close: () => {},
    };
  }
  const isMixed = form.channels === 'mono' && source.channels === 2;
  const channels = isMixed || source.channels === 1 ? 1 : 2;
  const mixed = (samples: Int16Array) => (isMixed ? mixedDown(samples) : samples);
  if (form.format === 'wav') {
    const { sampleRateHz, frames } = source;
    return {
      begin: () => wavHeader({ channels, sampleRateHz }, frames * channels * 2),
      encode: (samples) => littleEndian(mixed(samples)),
      finish: () => '',
      close: () => {},
    };
  }
  const open = form.format === 'mp3' ? openMp3Encoder : openOggOpusEncoder;
  const encoder = await open(source.sampleRateHz, channels);
  return {
    begin: () => '',
    encode: (samples) => encoder.encode(mixed(samples)),
    finish: () => encoder.finish(),
    close: () => encoder.close(),
  };
}

/** Mixes both parties at full level, because they rarely speak at once. Limits the sum instead of halving it. */
function mixedDown(samples: Int16Array): Int16Array<ArrayBuffer> {
  const mono = new Int16Array(samples.length / 2);
  for (let i = 0; i < mono.length; i++) {
    mono[i] = Math.max(-32_768, Math.min(32_767, samples[2 * i]! + samples[2 * i + 1]!));
  }
  return mono;
}

function samplesOf(bytes: Buffer): Int16Array<ArrayBuffer> {
  const samples = new Int16Array(bytes.length / 2);
  for (let i = 0; i < samples.length; i++) samples[i] = bytes.readInt16LE(2 * i);
  return samples;
}

function littleEndian(samples: Int16Array): Buffer {
  const bytes = Buffer.alloc(2 * samples.length);
  for (let i = 0; i < samples.length; i++) bytes.writeInt16LE(samples[i]!, 2 * i);
  return bytes;
}
