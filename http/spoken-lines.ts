import type { SpokenText } from '../actors/tts/tts-desk.ts';
import { TandemError } from '../machines/errors.ts';
import { seconds } from '../machines/utterances.ts';
import { wavHeader } from '../media/wav.ts';
import type { AUDIO_ENCODINGS } from './schemas/tts.ts';

export interface SpokenLinesOptions {
  text: string;
  encoding: (typeof AUDIO_ENCODINGS)[number];
  sampleRateHz: number;
  voiceId: string;
  withWordTimes: boolean;
}

/** A line holds this much audio at the most: a player begins with the first. Even, so that samples stay whole. */
const CHUNK_BYTES = 16 * 1024;

/** The response of the speech operations, line by line. An error is a line too: the status went out long before. */
export async function* spokenAsLines(spoken: SpokenText, options: SpokenLinesOptions): AsyncGenerator<string, void> {
  const { text, encoding, sampleRateHz, voiceId, withWordTimes } = options;
  const words: string[] = [];
  const starts: number[] = [];
  const ends: number[] = [];
  let durationMs = 0;
  try {
    // How much will follow is not known; a reader goes on to the end.
    if (encoding === 'WAV') yield chunkLine(wavHeader({ channels: 1, sampleRateHz }, Number.POSITIVE_INFINITY));
    for await (const clause of spoken.clauses) {
      for (let start = 0; start < clause.audio.byteLength; start += CHUNK_BYTES) {
        yield chunkLine(clause.audio.subarray(start, start + CHUNK_BYTES));
      }
      for (const { word, startMs, endMs } of clause.words) {
        words.push(word);
        starts.push(seconds(durationMs + startMs));
        ends.push(seconds(durationMs + endMs));
      }
      durationMs += clause.durationMs;
    }
  } catch (error) {
    const message = error instanceof TandemError ? error.message : 'The speech was broken off.';
    yield `${JSON.stringify({ type: 'error', message })}\n`;
    return;
  }
  const wordAlignment = { words, wordStartTimeSeconds: starts, wordEndTimeSeconds: ends };
  const complete = {
    type: 'complete',
    result: {
      ...(withWordTimes && { timestampInfo: { wordAlignment } }),
      usage: { processedCharactersCount: [...text].length },
    },
    duration_seconds: seconds(durationMs),
    sample_rate_hertz: sampleRateHz,
    audio_encoding: encoding,
    voice_id: voiceId,
    cost_usd: Number(spoken.charge.chargedNano) / 1e9,
  };
  yield `${JSON.stringify(complete)}\n`;
}

function chunkLine(audio: Buffer): string {
  return `{"type":"chunk","result":{"audioContent":"${audio.toString('base64')}"}}\n`;
}
