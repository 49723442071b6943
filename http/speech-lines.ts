import type { SynthesisStream } from '../actors/tts/tts-desk.ts';
import { TandemError } from '../machines/errors.ts';
import { seconds } from '../machines/utterances.ts';
import { wavHeader } from '../media/wav.ts';
import { nanoToUsd } from '../runtime/money.ts';
import type { AUDIO_ENCODINGS } from './schemas/tts.ts';

export interface SpeechLinesOptions {
  encoding: (typeof AUDIO_ENCODINGS)[number];
  sampleRateHz: number;
  withWordTimes: boolean;
}

/** Maximum audio per line, so that players can start early. Even, so that samples stay whole. */
const CHUNK_BYTES = 16 * 1024;

/** Formats speech as NDJSON. An error becomes a line too, because the status is already sent. */
export async function* speechLines(spoken: SynthesisStream, options: SpeechLinesOptions): AsyncGenerator<string, void> {
  const { encoding, sampleRateHz, withWordTimes } = options;
  const words: string[] = [];
  const starts: number[] = [];
  const ends: number[] = [];
  const marks: { name: string; time_seconds: number }[] = [];
  let durationMs = 0;
  try {
    // The length is unknown, so the header says to read to the end.
    if (encoding === 'WAV') yield chunkLine(wavHeader({ channels: 1, sampleRateHz }, Number.POSITIVE_INFINITY));
    for await (const part of spoken.parts) {
      for (let start = 0; start < part.audio.byteLength; start += CHUNK_BYTES) {
        yield chunkLine(part.audio.subarray(start, start + CHUNK_BYTES));
      }
      for (const { word, startMs, endMs } of part.words) {
        words.push(word);
        starts.push(seconds(startMs));
        ends.push(seconds(endMs));
      }
      for (const { name, atMs } of part.marks ?? []) marks.push({ name, time_seconds: seconds(atMs) });
      durationMs = part.durationMs;
    }
  } catch (error) {
    const message = error instanceof TandemError ? error.message : 'Speech synthesis failed.';
    yield `${JSON.stringify({ type: 'error', message })}\n`;
    return;
  }
  const wordAlignment = { words, wordStartTimeSeconds: starts, wordEndTimeSeconds: ends };
  const timestampInfo = { ...(withWordTimes && { wordAlignment }), ...(marks.length > 0 && { marks }) };
  const complete = {
    type: 'complete',
    result: {
      ...((withWordTimes || marks.length > 0) && { timestampInfo }),
      usage: { processedCharactersCount: spoken.characters },
    },
    duration_seconds: seconds(durationMs),
    sample_rate_hertz: sampleRateHz,
    audio_encoding: encoding,
    voice_id: spoken.voiceId,
    cost_usd: nanoToUsd(spoken.charge.chargedNano),
  };
  yield `${JSON.stringify(complete)}\n`;
}

function chunkLine(audio: Uint8Array): string {
  const bytes = Buffer.from(audio.buffer, audio.byteOffset, audio.byteLength);
  return `{"type":"chunk","result":{"audioContent":"${bytes.toString('base64')}"}}\n`;
}
