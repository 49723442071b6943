import { setTimeout as sleep } from 'node:timers/promises';
import type { AudioFormat, RecognitionEvent, UtteranceSummary } from '../machines/utterances.ts';
import type { ListeningPlane, ListeningSession } from '../media/listening-plane.ts';
import type { SpeechRecognition } from '../speech/speech-recognition.ts';
import { collections, FRAME_MS, type Sample } from './speech-material.ts';

/** A telephone line with repeated speech, and a live session that recognises it. */

/** Telephone audio, in frames as many clients send them. */
export const FORMAT: AudioFormat = { encoding: 'mulaw', sampleRateHz: 8_000, channels: 1 };
export const PACE_MS = 60;
export const FRAME_BYTES = 8 * PACE_MS;
/** The API's default. */
export const UTTERANCE_END_MS = 1_000;

/** Speech from its first to its last sound, in the time of its line. */
interface Span {
  startMs: number;
  endMs: number;
}

export interface Line {
  /** Whole frames, repeated endlessly. */
  octets: Uint8Array;
  durationMs: number;
  /** One for each utterance, in order. */
  spans: readonly Span[];
  /** Frames at which the silence before each begins. */
  beginnings: readonly number[];
  samples: readonly Sample[];
}

/** All the human speech that ships with an engine, with 3 s of silence between utterances. */
export function telephoneLine(): Line {
  const samples = collections(0).flatMap(({ samplesIn }) => samplesIn({ band: 'phone', snrDb: null }));
  const beginnings: number[] = [];
  let frames = 0;
  for (const { bytes } of samples) {
    beginnings.push(frames);
    frames += Math.ceil(bytes.length / FRAME_BYTES);
  }
  const octets = new Uint8Array(frames * FRAME_BYTES).fill(0xff);
  const spans = samples.map(({ bytes, isSpeech }, index) => {
    const beginning = beginnings[index]!;
    octets.set(bytes, beginning * FRAME_BYTES);
    const beginningMs = beginning * PACE_MS;
    return {
      startMs: beginningMs + isSpeech.indexOf(true) * FRAME_MS,
      endMs: beginningMs + (isSpeech.lastIndexOf(true) + 1) * FRAME_MS,
    };
  });
  return { octets, durationMs: frames * PACE_MS, spans, beginnings, samples };
}

export interface SessionOptions {
  plane: ListeningPlane;
  recognition: SpeechRecognition;
  hypothesisEveryMs: number | null;
}

interface SpeakOptions extends SessionOptions {
  line: Line;
  /** First frame of the line to play. */
  beginAt: number;
  onEvent: (event: RecognitionEvent) => void;
  /** Aborting ends the stream there; speech so far is still recognised. */
  stop: AbortSignal;
}

export interface Spoken {
  audioMs: number;
  speechMs: number;
  answers: Answer[];
  /** The greatest delay of a frame. Caused by the benchmark, not the platform. */
  latestFrameMs: number;
  /** Why the session ended by itself; null if it did not. */
  failure: string | null;
}

/** The final of a complete utterance followed by a pause. */
export interface Answer {
  /** Time of its last sound, on the clock of `performance.now()`. */
  speechEndedAtMs: number;
  /** Delay of its last final; null if it was not recognised. */
  afterMs: number | null;
}

/** Plays the line in real time into a session, until stopped or until the session ends. */
export async function speak(options: SpeakOptions): Promise<Spoken> {
  const { line, beginAt, stop } = options;
  const outcomes: { summary: UtteranceSummary; atMs: number }[] = [];
  const onEvent = (event: RecognitionEvent): void => {
    options.onEvent(event);
    if ('summary' in event) outcomes.push({ summary: event.summary, atMs: performance.now() });
  };
  const session = await openSession({ ...options, onEvent });
  const beganAtMs = performance.now();
  let latestFrameMs = 0;
  let frames = 0;
  while (!stop.aborted && !session.hasEnded()) {
    // A frame is complete when its last sample was spoken.
    const dueMs = beganAtMs + (frames + 1) * PACE_MS;
    await sleep(Math.max(0, dueMs - performance.now()));
    latestFrameMs = Math.max(latestFrameMs, performance.now() - dueMs);
    const at = ((beginAt + frames) * FRAME_BYTES) % line.octets.length;
    session.listening.write(line.octets.slice(at, at + FRAME_BYTES));
    frames += 1;
  }
  const failure = await session.end();
  const audioMs = frames * PACE_MS;
  const spans = spansPlayed(line, beginAt * PACE_MS, audioMs);
  const answers = spans
    .filter(({ endMs }) => endMs + UTTERANCE_END_MS + SETTLE_MS < audioMs)
    .map(({ startMs, endMs }): Answer => {
      const last = outcomes.findLast(({ summary }) => summary.startMs < endMs && summary.endMs > startMs);
      const speechEndedAtMs = beganAtMs + endMs;
      return { speechEndedAtMs, afterMs: last === undefined ? null : last.atMs - speechEndedAtMs };
    });
  const speechMs = spans.reduce((sum, { startMs, endMs }) => sum + Math.min(endMs, audioMs) - Math.max(0, startMs), 0);
  return { audioMs, speechMs, answers, latestFrameMs, failure };
}

/** Runs a session that receives a short utterance faster than real time. @throws Error if it fails */
export async function speakBriefly(options: SessionOptions & { octets: Uint8Array<ArrayBuffer> }): Promise<void> {
  const session = await openSession({ ...options, onEvent: () => {} });
  session.listening.write(options.octets.slice());
  const failure = await session.end();
  if (failure !== null) throw new Error(failure);
}

interface Session {
  listening: ListeningSession;
  hasEnded: () => boolean;
  /** Waits for pending recognition and closes everything. Resolves with the failure, or null. */
  end: () => Promise<string | null>;
}

/** Opens a session as `/ws/stt` does. */
async function openSession({
  plane,
  recognition,
  hypothesisEveryMs,
  onEvent,
}: SessionOptions & { onEvent: (event: RecognitionEvent) => void }): Promise<Session> {
  const ended = Promise.withResolvers<string | null>();
  let hasEnded = false;
  const end = (failure: string | null): void => {
    hasEnded = true;
    ended.resolve(failure);
  };
  const closing = new AbortController();
  const common = { signal: closing.signal };
  const stream = await recognition.open({
    ...common,
    streamId: 'bench',
    mode: 'live',
    languages: ['en'],
    keywords: [],
    hypothesisEveryMs,
    diarization: null,
    onEvent: (event) => {
      onEvent(event);
      if (event.type === 'recognition.ended') end(null);
      if (event.type === 'recognition.failed') end(event.message);
      if (event.type === 'recognition.overloaded') end('overloaded');
    },
  });
  const listening = await plane.open({
    ...common,
    sessionId: 'bench',
    format: FORMAT,
    utteranceEndMs: UTTERANCE_END_MS,
    enhancement: 'off',
    utterances: stream.utterances,
    onEvent: (event) => {
      if (event.type === 'listening.lost') end(event.detail);
    },
  });
  return {
    listening,
    hasEnded: () => hasEnded,
    async end() {
      if (!hasEnded) await listening.finish().catch((error) => end(String(error)));
      const failure = await ended.promise;
      closing.abort();
      return failure;
    },
  };
}

/** A detector may report the end late. An utterance that the end of the stream may have cut is not counted. */
const SETTLE_MS = 300;

/** The spans that were played at least in part, in the time of the session. */
export function spansPlayed({ spans, durationMs }: Line, beginAtMs: number, audioMs: number): Span[] {
  const rounds = Math.ceil((beginAtMs + audioMs) / durationMs);
  return Array.from({ length: rounds }, (_, round) =>
    spans.map(({ startMs, endMs }) => ({
      startMs: startMs + round * durationMs - beginAtMs,
      endMs: endMs + round * durationMs - beginAtMs,
    })),
  )
    .flat()
    .filter(({ startMs, endMs }) => endMs > 0 && startMs < audioMs);
}
