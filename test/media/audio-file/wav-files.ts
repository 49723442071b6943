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

/** Output of ffmpeg `-f format`; `more` are output options. */
export async function encoded(inputPath: string, format: string, more: readonly string[] = []): Promise<Buffer> {
  const [node, ...program] = BUNDLED_FFMPEG.command;
  const args = [...program, '-loglevel', 'error', '-i', `file:${inputPath}`, ...more, '-f', format, 'pipe:1'];
  const { stdout } = await promisify(execFile)(node!, args, { encoding: 'buffer', maxBuffer: 2 ** 26 });
  return stdout;
}
