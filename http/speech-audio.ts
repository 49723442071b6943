import type { SynthesisStream } from '../actors/tts/tts-desk.ts';
import { wavHeader } from '../media/wav.ts';

/**
 * Streams speech as audio. A failure midway breaks the connection, so that clients do not take partial audio for all of
 * it.
 */
export async function* speechAudio(
  { parts }: SynthesisStream,
  { isWav, sampleRateHz }: { isWav: boolean; sampleRateHz: number },
): AsyncGenerator<Uint8Array, void> {
  // The length is unknown, so the header says to read to the end.
  if (isWav) yield wavHeader({ channels: 1, sampleRateHz }, Number.POSITIVE_INFINITY);
  for await (const { audio } of parts) if (audio.byteLength > 0) yield audio;
}
