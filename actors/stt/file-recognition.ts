import { TandemError } from '../../machines/errors.ts';
import type { DecodedAudio, RecognisedFile } from '../../machines/transcription.machine.ts';
import type { RecognitionEvent } from '../../machines/utterances.ts';
import { hasPartyPerChannel } from '../../media/audio-file/channel-likeness.ts';
import type { ListeningPlane } from '../../media/listening-plane.ts';
import { raceAbort } from '../../runtime/waiting.ts';
import { correctScript } from '../../speech/script-correction.ts';
import type { RecognitionStream, SpeechRecognition } from '../../speech/speech-recognition.ts';
import type { TranscribeRequest } from './transcriber.ts';
import { assembleTranscript, type UtteranceRecognised, type UtteranceUnusable } from './transcript-assembly.ts';

export type FileRecognitionRequest = Pick<
  TranscribeRequest,
  'languages' | 'keywords' | 'diarize' | 'minSpeakers' | 'maxSpeakers' | 'scriptCorrection' | 'minSplitMs'
>;

export interface FileRecognitionOptions {
  transcriptionId: string;
  request: FileRecognitionRequest;
  audio: DecodedAudio;
  listening: Pick<ListeningPlane, 'listenToFile'>;
  recognition: Pick<SpeechRecognition, 'open'>;
  signal: AbortSignal;
}

/**
 * Recognises a file, chunk by chunk in parallel.
 * @throws TandemError `unsupported_language`, or the engines' error; the signal's reason when aborted
 */
export async function recogniseFile(options: FileRecognitionOptions): Promise<RecognisedFile> {
  const { transcriptionId, request, audio, listening, recognition, signal } = options;
  const isByChannel = request.diarize && (await hasPartyPerChannel(audio));
  const outcomes = collectOutcomes();
  // If listening or recognition fails, the other one stops.
  const either = new AbortController();
  const both = AbortSignal.any([signal, either.signal]);
  let stream: RecognitionStream | null = null;
  try {
    stream = await recognition.open({
      streamId: transcriptionId,
      mode: 'batch',
      languages: request.languages,
      keywords: request.keywords,
      hypothesisEveryMs: null,
      diarization: request.diarize ? diarizationOf(request, isByChannel) : null,
      onEvent: outcomes.take,
      signal: both,
    });
    const listened = listening.listenToFile({
      source: audio.source,
      channels: isByChannel ? 'separate' : 'mixed',
      enhancement: 'off',
      minSplitMs: request.minSplitMs,
      utterances: stream.utterances,
      signal: both,
    });
    const [summary, recognised] = await raceAbort(Promise.all([listened, outcomes.all]), signal);
    const corrected = request.scriptCorrection ? recognised.map((one) => inScript(one, request)) : recognised;
    const { model, boostsKeywords } = stream;
    const ignoresKeywords = !boostsKeywords && request.keywords.some(({ weight }) => weight > 0);
    return assembleTranscript(corrected, { snrDb: summary.snrDb, model, ignoresKeywords });
  } finally {
    either.abort();
    stream?.close();
  }
}

function diarizationOf({ minSpeakers, maxSpeakers }: FileRecognitionRequest, isByChannel: boolean) {
  return { by: isByChannel ? ('channel' as const) : ('voice' as const), minSpeakers, maxSpeakers };
}

type Outcome = UtteranceRecognised | UtteranceUnusable;

function collectOutcomes(): { take: (event: RecognitionEvent) => void; all: Promise<Outcome[]> } {
  const outcomes: Outcome[] = [];
  const { promise, resolve, reject } = Promise.withResolvers<Outcome[]>();
  // Listening may fail first. Avoids an unhandled rejection.
  promise.catch(() => undefined);
  return {
    all: promise,
    take(event) {
      switch (event.type) {
        case 'utterance.recognised':
        case 'utterance.unusable':
          outcomes.push(event);
          return;
        case 'recognition.ended':
          resolve(outcomes);
          return;
        case 'recognition.failed':
          reject(failure(event));
          return;
        default:
      }
    },
  };
}

/** Hides error codes of an upstream server. The engines' host maps them to those of the catalogue. */
function failure({
  code,
  message,
  retryAfterS,
}: Extract<RecognitionEvent, { type: 'recognition.failed' }>): TandemError {
  const after = retryAfterS === null ? {} : { retryAfterS, details: { retry_after: retryAfterS } };
  switch (code) {
    case 'unsupported_language':
    case 'STT_UPSTREAM_RATE_LIMIT':
    case 'STT_UPSTREAM_UNAVAILABLE':
    case 'SHUTTING_DOWN':
      return new TandemError(code, message, after);
    default:
      return new TandemError('INTERNAL', 'Speech recognition failed.', { cause: new Error(`${code}: ${message}`) });
  }
}

function inScript(outcome: Outcome, { languages }: FileRecognitionRequest): Outcome {
  if (outcome.type !== 'utterance.recognised') return outcome;
  const { text, words } = outcome.recognition;
  return { ...outcome, recognition: { ...outcome.recognition, ...correctScript({ text, words, languages }) } };
}
