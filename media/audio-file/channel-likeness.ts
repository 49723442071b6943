import { open } from 'node:fs/promises';
import type { AudioFormat } from '../../machines/utterances.ts';
import { decodeG711 } from '../codecs/g711.ts';
import type { AudioFile } from './audio-file.ts';

/** Spread over the file: a few thousand samples, whatever its length. */
const WINDOWS = 96;
const WINDOW_MS = 10;
/**
 * Correlation is 1 for one microphone in both channels, above 0.8 for a room in stereo, near 0 for two ends of a line.
 */
const LIKENESS_OF_ONE_SCENE = 0.5;

/**
 * Whether the two channels are two parties, as in a call recording, rather than a stereo scene. Includes levels,
 * because an echo in the other channel is only weaker.
 */
export async function hasPartyPerChannel({ source }: Pick<AudioFile, 'source'>): Promise<boolean> {
  const { filePath, offset, bytes, format } = source;
  if (format.channels !== 2) return false;
  const frameBytes = format.encoding === 'linear16' ? 4 : 2;
  const frames = Math.floor(bytes / frameBytes);
  const windowFrames = Math.min(frames, Math.ceil((format.sampleRateHz * WINDOW_MS) / 1000));
  const buffer = Buffer.alloc(windowFrames * frameBytes);
  const handle = await open(filePath, 'r');
  let both = 0;
  let power = 0;
  try {
    for (let window = 0; window < WINDOWS; window++) {
      const frame = Math.floor(((frames - windowFrames) * window) / (WINDOWS - 1));
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, offset + frame * frameBytes);
      const samples = samplesOf(buffer.subarray(0, bytesRead), format);
      for (let i = 0; i + 1 < samples.length; i += 2) {
        const left = samples[i]!;
        const right = samples[i + 1]!;
        both += 2 * left * right;
        power += left * left + right * right;
      }
    }
  } finally {
    await handle.close();
  }
  return power > 0 && both / power < LIKENESS_OF_ONE_SCENE;
}

function samplesOf(bytes: Buffer, { encoding }: AudioFormat): Int16Array {
  if (encoding === 'linear16')
    return Int16Array.from({ length: bytes.length >> 1 }, (_, i) => bytes.readInt16LE(i * 2));
  const samples = new Int16Array(bytes.length);
  decodeG711(encoding === 'mulaw' ? 'PCMU' : 'PCMA', bytes, samples);
  return samples;
}
