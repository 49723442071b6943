import { open } from 'node:fs/promises';
import { SynthesizerError } from '../../synthesizer.ts';

/** @throws SynthesizerError `model` if it is not a mono WAV file of 16-bit PCM */
export async function readReference(path: string): Promise<{ samples: Float32Array; sampleRateHz: number }> {
  const file = await readAtMost(path);
  if (file.toString('latin1', 0, 4) !== 'RIFF' || file.toString('latin1', 8, 12) !== 'WAVE') throw unusable();
  let sampleRateHz = 0;
  for (let at = 12; at + 8 <= file.byteLength; ) {
    const name = file.toString('latin1', at, at + 4);
    const length = file.readUInt32LE(at + 4);
    const chunk = file.subarray(at + 8, at + 8 + length);
    if (name === 'fmt ' && chunk.byteLength >= 16) {
      const isMonoPcm = chunk.readUInt16LE(0) === 1 && chunk.readUInt16LE(2) === 1 && chunk.readUInt16LE(14) === 16;
      if (!isMonoPcm) throw unusable();
      sampleRateHz = chunk.readUInt32LE(4);
    }
    if (name === 'data') {
      const samples = new Float32Array(chunk.byteLength >> 1);
      if (sampleRateHz < 8000 || sampleRateHz > 48_000 || samples.length === 0) throw unusable();
      for (let sample = 0; sample < samples.length; sample++) samples[sample] = chunk.readInt16LE(2 * sample) / 32_768;
      return { samples, sampleRateHz };
    }
    at += 8 + length + (length % 2);
  }
  throw unusable();
}

/** Half a minute at 48 kHz is 3 MB; models use some seconds. */
const MOST_BYTES = 8_000_000;

async function readAtMost(path: string): Promise<Buffer> {
  try {
    await using file = await open(path);
    const { size } = await file.stat();
    const buffer = Buffer.alloc(Math.min(size, MOST_BYTES));
    const { bytesRead } = await file.read(buffer, 0, buffer.byteLength, 0);
    return buffer.subarray(0, bytesRead);
  } catch (error) {
    throw new SynthesizerError('model', 'the recording of the voice is not there', { cause: error });
  }
}

function unusable(): SynthesizerError {
  return new SynthesizerError('model', 'the recording of the voice must be a mono 16-bit PCM WAV file');
}
