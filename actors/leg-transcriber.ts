import type { MessagePort } from 'node:worker_threads';
import { fromCallback } from 'xstate';
import { TandemError } from '../machines/errors.ts';
import type { CallSegment, LegId } from '../machines/events.ts';
import type { TranscriberCommand, TranscriberInput, TranscriberReport } from '../machines/transcript.machine.ts';
import type { RecognitionEvent } from '../machines/utterances.ts';
import type { ListeningPlane } from '../media/listening-plane.ts';
import { type MediaSession, TAP_FORMAT } from '../media/media-plane.ts';
import type { SpeechRecognition } from '../speech/speech-recognition.ts';
import type { CallHypotheses } from './call-hypotheses.ts';
import type { Logger } from './logger.ts';

/** Silence that ends an utterance on the telephone. */
const UTTERANCE_END_MS = 700;
/** An utterance is never longer; do not trust the engine's output. */
const LONGEST_TEXT = 10_000;

export const LIVE_RECOGNITION = {
  mode: 'live',
  languages: null,
  keywords: [],
  hypothesisEveryMs: null,
  diarization: null,
} as const;

export interface Tapped {
  session: Pick<MediaSession, 'stopTap'>;
  taps: Record<LegId, Tap>;
  hypotheses: CallHypotheses;
  /** Called while `hypotheses` are on. */
  onHypothesis: (hypothesis: TranscriberHypothesis) => void;
}

/** Partial transcript of a leg. */
export interface TranscriberHypothesis {
  leg: LegId;
  text: string;
  /** Since the bridge; null if the engine reports no times. */
  startMs: number | null;
  endMs: number | null;
}

export interface Tap {
  /** Receiving end of the tap's port. */
  inlet: MessagePort;
  /** Start of the tap, since the bridge. */
  beganMs: number;
}

interface TranscriberPortOptions {
  listening: ListeningPlane;
  recognition: SpeechRecognition;
  logger: Logger;
  tappedOf: (callId: string) => Tapped | undefined;
}

/** The transcript machine's `transcriber` port: taps one leg, listens to it and recognises its speech. */
export function transcriberPort({ listening, recognition, logger, tappedOf }: TranscriberPortOptions) {
  return fromCallback<TranscriberCommand, TranscriberInput>(({ input: { callId, leg }, receive, sendBack }) => {
    const send = (report: TranscriberReport) => sendBack(report);
    const tapped = tappedOf(callId);
    const tap = tapped?.taps[leg];
    const report = (reason: string) => send({ type: 'transcriber.failed', leg, reason });
    if (!tapped || !tap) {
      report('INTERNAL');
      return;
    }
    const abort = new AbortController();
    const { signal } = abort;
    const streamId = `${callId}/${leg}`;

    function onRecognition(event: RecognitionEvent): void {
      if (event.type === 'utterance.recognised') {
        const segment = segmentOf(leg, event, tap!.beganMs);
        if (segment.text !== '') send({ type: 'transcriber.segment', segment });
      } else if (event.type === 'utterance.hypothesis') {
        if (tapped!.hypotheses.isOn) tapped!.onHypothesis(hypothesisOf(leg, event, tap!.beganMs));
      } else if (event.type === 'recognition.ended') send({ type: 'transcriber.ended', leg });
      else if (event.type === 'recognition.overloaded') report('OVERLOADED');
      else if (event.type === 'recognition.failed') report(event.code);
    }

    async function open() {
      const stream = await recognition.open({
        streamId,
        ...LIVE_RECOGNITION,
        // The placement was rejected if there was no capacity to transcribe it live.
        isPromised: true,
        onEvent: onRecognition,
        signal,
      });
      tapped!.hypotheses.add(stream, signal);
      return await listening.open({
        sessionId: streamId,
        format: TAP_FORMAT,
        utteranceEndMs: UTTERANCE_END_MS,
        enhancement: 'off',
        utterances: stream.utterances,
        inlet: tap!.inlet,
        onEvent: (event) => {
          if (event.type === 'listening.lost') report('LISTENING_LOST');
        },
        signal,
      });
    }

    function fail(error: unknown): void {
      if (signal.aborted) return;
      logger.warn({ callId, leg, err: error }, 'leg cannot be transcribed');
      report(error instanceof TandemError ? error.code : 'INTERNAL');
    }

    const opening = open();
    opening.catch(fail);
    receive(() => {
      opening
        .then(
          async (session) => {
            // By then the listener has received all audio.
            await tapped.session.stopTap(leg);
            await session.finish();
          },
          () => {},
        )
        .catch(fail);
    });
    return () => {
      abort.abort();
      tap.inlet.close();
    };
  });
}

function hypothesisOf(
  leg: LegId,
  { text, words }: Extract<RecognitionEvent, { type: 'utterance.hypothesis' }>,
  beganMs: number,
): TranscriberHypothesis {
  const [first, last] = [words[0], words.at(-1)];
  return {
    leg,
    text: storable(text).trim(),
    startMs: first === undefined ? null : beganMs + first.startMs,
    endMs: last === undefined ? null : beganMs + last.endMs,
  };
}

function segmentOf(
  leg: LegId,
  { utteranceId, summary, recognition }: Extract<RecognitionEvent, { type: 'utterance.recognised' }>,
  beganMs: number,
): CallSegment {
  const startMs = beganMs + summary.startMs;
  return {
    leg,
    utteranceId,
    text: storable(recognition.text).trim(),
    language: storable(recognition.language),
    startMs,
    endMs: Math.max(startMs, beganMs + summary.endMs),
    confidence: recognition.confidence,
    words: recognition.words.map((word) => ({
      word: storable(word.word),
      startMs: beganMs + word.startMs,
      endMs: beganMs + word.endMs,
      confidence: word.confidence,
    })),
  };
}

/** Removes NUL and lone surrogates, which Postgres rejects. */
function storable(text: string): string {
  return text.replaceAll('\0', '').slice(0, LONGEST_TEXT).toWellFormed();
}
