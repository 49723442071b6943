import { api, apiErrorOf } from '../../app/api.ts';
import { ApiError } from '../../app/api-error.ts';
import { speechText } from '../../text/speech.ts';
import { isRaw, wavOf } from '../audio/wav.ts';
import { linesOf } from '../lines.ts';
import { FILES, type SpeechForm, speechRequestOf } from './speech-request.ts';

export interface SpokenWord {
  word: string;
  start: number;
  end: number;
}

/** A synthesised text. */
export interface Speech {
  /** In a form that browsers play. */
  playable: Blob;
  /** As the server sent it. */
  file: Blob;
  words: readonly SpokenWord[];
  usd: number;
  characters: number;
  durationS: number;
  firstAudioMs: number;
  tookMs: number;
}

type Line =
  | { type: 'chunk'; result: { audioContent: string } }
  | { type: 'error'; message: string }
  | {
      type: 'complete';
      cost_usd: number;
      duration_seconds: number;
      result: { timestampInfo?: { wordAlignment?: Alignment }; usage: { processedCharactersCount: number } };
    };

interface Alignment {
  words: string[];
  wordStartTimeSeconds: number[];
  wordEndTimeSeconds: number[];
}

/** Synthesises a text. `onAudio` receives the audio as it arrives. @throws ApiError */
export async function synthesise(
  form: SpeechForm,
  { signal, onAudio }: { signal: AbortSignal; onAudio?: (audio: Uint8Array<ArrayBuffer>) => void },
): Promise<Speech> {
  const startedAt = performance.now();
  const { data, error, response } = await api.POST('/tts-stream', {
    body: speechRequestOf(form),
    headers: { accept: 'application/x-ndjson' },
    parseAs: 'stream',
    signal,
  });
  if (!response.ok || !data) throw apiErrorOf(response, error);
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let firstAudioMs = 0;
  for await (const text of linesOf(data as ReadableStream<Uint8Array<ArrayBuffer>>)) {
    if (text === '') continue;
    const line = JSON.parse(text) as Line;
    if (line.type === 'error') throw new ApiError({ status: 500, code: 'TTS_FAILED', message: line.message });
    if (line.type === 'chunk') {
      const audio = Uint8Array.from(atob(line.result.audioContent), (character) => character.charCodeAt(0));
      if (parts.length === 0) firstAudioMs = performance.now() - startedAt;
      parts.push(audio);
      onAudio?.(audio);
      continue;
    }
    return {
      ...filesOf(form, parts),
      words: wordsOf(line.result.timestampInfo?.wordAlignment),
      usd: line.cost_usd,
      characters: line.result.usage.processedCharactersCount,
      durationS: line.duration_seconds,
      firstAudioMs,
      tookMs: performance.now() - startedAt,
    };
  }
  throw new ApiError({ status: 0, code: 'INTERRUPTED', message: speechText.interrupted });
}

function filesOf({ encoding, rateHz }: SpeechForm, parts: readonly Uint8Array<ArrayBuffer>[]) {
  const file = new Blob([...parts], { type: FILES[encoding].mediaType });
  if (isRaw(encoding)) return { file, playable: wavOf(joined(parts), encoding, rateHz) };
  // A streamed header lacks the length, which players show.
  if (encoding === 'WAV') return { file, playable: wavOf(joined(parts).slice(WAV_HEADER_BYTES), 'LINEAR16', rateHz) };
  return { file, playable: file };
}

const WAV_HEADER_BYTES = 44;

function joined(parts: readonly Uint8Array<ArrayBuffer>[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.length;
  }
  return whole;
}

function wordsOf(alignment: Alignment | undefined): SpokenWord[] {
  return (alignment?.words ?? []).map((word, index) => ({
    word,
    start: alignment!.wordStartTimeSeconds[index]!,
    end: alignment!.wordEndTimeSeconds[index]!,
  }));
}
