import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { BUNDLED_FFMPEG } from '../../../media/audio-file/ffmpeg.ts';
import { wavHeader } from '../../../media/wav.ts';

export function wavFile(...channels: Int16Array[]): Buffer {
  const frames = channels[0]!.length;
  const interleaved = new Int16Array(frames * channels.length);
  for (const [channel, samples] of channels.entries()) {
    for (let frame = 0; frame < frames; frame++) interleaved[frame * channels.length + channel] = samples[frame] ?? 0;
  }
  const data = Buffer.from(interleaved.buffer);
  return Buffer.concat([wavHeader({ channels: channels.length, sampleRateHz: 16_000 }, data.length), data]);
}

interface ExtensibleFormat {
  /** 1 is linear, 3 floating point. */
  kind: 1 | 3;
  validBits: number;
  sampleBytes: 3 | 4;
  /** One bit for each. */
  loudspeakers?: number;
}

/** WAVE_FORMAT_EXTENSIBLE with samples in containers of another width. */
export function extensibleWavFile(
  { kind, validBits, sampleBytes, loudspeakers = 0 }: ExtensibleFormat,
  ...channels: Int16Array[]
): Buffer {
  const frameBytes = channels.length * sampleBytes;
  const data = Buffer.alloc(channels[0]!.length * frameBytes);
  const header = Buffer.alloc(68);
  header.write('RIFF\0\0\0\0WAVEfmt ', 'latin1');
  header.writeUInt32LE(60 + data.length, 4);
  header.writeUInt32LE(40, 16);
  header.writeUInt16LE(0xfffe, 20);
  header.writeUInt16LE(channels.length, 22);
  header.writeUInt32LE(16_000, 24);
  header.writeUInt32LE(16_000 * frameBytes, 28);
  header.writeUInt16LE(frameBytes, 32);
  header.writeUInt16LE(sampleBytes * 8, 34);
  header.writeUInt16LE(22, 36);
  header.writeUInt16LE(validBits, 38);
  header.writeUInt32LE(loudspeakers, 40);
  header.writeUInt16LE(kind, 44);
  header.write('000000001000800000aa00389b71', 46, 'hex');
  header.write('data', 60);
  header.writeUInt32LE(data.length, 64);
  for (const [channel, samples] of channels.entries()) {
    for (const [i, sample] of samples.entries()) {
      const at = i * frameBytes + channel * sampleBytes;
      if (kind === 3) data.writeFloatLE(sample / 32_768, at);
      else data.writeInt16LE(sample, at + sampleBytes - 2);
    }
  }
  return Buffer.concat([header, data]);
}

/** Output of ffmpeg `-f format`; `more` are output options. */
export async function encoded(inputPath: string, format: string, more: readonly string[] = []): Promise<Buffer> {
  const [node, ...program] = BUNDLED_FFMPEG.command;
  const args = [...program, '-loglevel', 'error', '-i', `file:${inputPath}`, ...more, '-f', format, 'pipe:1'];
  const { stdout } = await promisify(execFile)(node!, args, { encoding: 'buffer', maxBuffer: 2 ** 26 });
  return stdout;
}
