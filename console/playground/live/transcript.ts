/** State of a live transcript, from the messages of `/ws/stt`. */

export interface Word {
  word: string;
  start: number;
  end: number;
  confidence?: number;
  speaker?: string;
  boosted?: boolean;
  original?: string;
}

export interface Utterance {
  id: string;
  text: string;
  words: readonly Word[];
  isFinal: boolean;
  mode: string;
}

export interface Transcript {
  utterances: readonly Utterance[];
  interimLagMs: number | null;
  finalLagMs: number | null;
  warnings: readonly string[];
  bill: { seconds: number; usd: number } | null;
}

export const EMPTY_TRANSCRIPT: Transcript = {
  utterances: [],
  interimLagMs: null,
  finalLagMs: null,
  warnings: [],
  bill: null,
};

export interface SocketMessage {
  type: string;
  [field: string]: unknown;
}

interface TranscriptionMessage {
  sentence_id: string;
  text: string;
  words: Word[];
  is_final: boolean;
  processing_mode: string;
  lag_ms: number;
}

/** The next interim or the final of an utterance replaces its interim. */
export function withMessage(transcript: Transcript, message: SocketMessage): Transcript {
  switch (message.type) {
    case 'session_started':
    case 'config_updated':
      return { ...transcript, warnings: message.warning_codes as string[] };
    case 'transcription':
      return withTranscription(transcript, message as unknown as TranscriptionMessage);
    case 'billing_summary':
      return { ...transcript, bill: { seconds: Number(message.total_duration_seconds), usd: Number(message.amount) } };
    default:
      return transcript;
  }
}

function withTranscription(transcript: Transcript, message: TranscriptionMessage): Transcript {
  const { sentence_id: id, text, words, is_final: isFinal, processing_mode: mode, lag_ms: lagMs } = message;
  const utterance: Utterance = { id, text, words, isFinal, mode };
  // Only the newest utterances can change.
  const index = transcript.utterances.findLastIndex((known) => known.id === id);
  const utterances = index < 0 ? [...transcript.utterances, utterance] : transcript.utterances.with(index, utterance);
  return { ...transcript, utterances, ...(isFinal ? { finalLagMs: lagMs } : { interimLagMs: lagMs }) };
}

/** A stretch of a text: a word with its details, or the text between words. */
export type Segment = { text: string; word: Word | null };

/** Locates the words in their text. Null: the text differs from the words. */
export function segmentsOf(text: string, words: readonly Word[]): Segment[] | null {
  const segments: Segment[] = [];
  let position = 0;
  for (const word of words) {
    const start = text.indexOf(word.word, position);
    if (word.word === '' || start < 0 || /[\p{L}\p{N}]/u.test(text.slice(position, start))) return null;
    if (start > position) segments.push({ text: text.slice(position, start), word: null });
    segments.push({ text: word.word, word });
    position = start + word.word.length;
  }
  if (position < text.length) segments.push({ text: text.slice(position), word: null });
  return segments;
}
