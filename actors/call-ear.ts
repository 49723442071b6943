import type { MessagePort } from 'node:worker_threads';
import { fromCallback } from 'xstate';
import { TandemError } from '../machines/errors.ts';
import type { CallSegment, LegId } from '../machines/events.ts';
import type { EarCommand, EarInput, EarReport } from '../machines/transcript.machine.ts';
import type { RecognitionEvent } from '../machines/utterances.ts';
import type { ListeningPlane } from '../media/listening-plane.ts';
import { type MediaSession, TAP_FORMAT } from '../media/media-plane.ts';
import type { SpeechRecognition } from '../speech/speech-recognition.ts';
import type { Logger } from './logger.ts';

/** Silence after which somebody on the telephone has finished speaking. */
const UTTERANCE_END_MS = 700;
/** Nobody says more between two pauses; what an engine writes is not to be trusted. */
const LONGEST_TEXT = 10_000;

/** How what a leg says is recognised. */
export const LIVE_RECOGNITION = {
  mode: 'live',
  languages: null,
  keywords: [],
  hypothesisEveryMs: null,
  diarization: null,
} as const;

/** What the ears of a call listen to. */
export interface Tapped {
  session: Pick<MediaSession, 'stopTap'>;
  taps: Record<LegId, Tap>;
}

export interface Tap {
  /** The other end of the tap's port. */
  inlet: MessagePort;
  /** When the tap began, since the bridge. */
  beganMs: number;
}

interface EarPortOptions {
  listening: ListeningPlane;
  recognition: SpeechRecognition;
  logger: Logger;
  tappedOf: (callId: string) => Tapped | undefined;
}

/** The transcript machine's `ear` port: a recogniser behind a listener behind the tap of one leg. */
export function earPort({ listening, recognition, logger, tappedOf }: EarPortOptions) {
  return fromCallback<EarCommand, EarInput>(({ input: { callId, leg }, receive, sendBack }) => {
    const tell = (report: EarReport) => sendBack(report);
    const tapped = tappedOf(callId);
    const tap = tapped?.taps[leg];
    const report = (reason: string) => tell({ type: 'ear.failed', leg, reason });
    if (!tapped || !tap) {
      report('INTERNAL');
      return;
    }
    const abort = new AbortController();
    const { signal } = abort;
    const streamId = `${callId}/${leg}`;

    function hear(event: RecognitionEvent): void {
      if (event.type === 'utterance.recognised') {
        const segment = segmentOf(leg, event, tap!.beganMs);
        if (segment.text !== '') tell({ type: 'ear.said', segment });
      } else if (event.type === 'recognition.ended') tell({ type: 'ear.ended', leg });
      else if (event.type === 'recognition.overloaded') report('OVERLOADED');
      else if (event.type === 'recognition.failed') report(event.code);
    }

    async function open() {
      const stream = await recognition.open({
        streamId,
        ...LIVE_RECOGNITION,
        onEvent: hear,
        signal,
      });
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
            // The listener has all that was said before it finishes.
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

/** Postgres takes neither NUL nor half a surrogate pair. */
function storable(text: string): string {
  return text.replaceAll('\0', '').slice(0, LONGEST_TEXT).toWellFormed();
}
