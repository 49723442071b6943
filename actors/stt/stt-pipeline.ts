import { fromCallback } from 'xstate';
import { TandemError } from '../../machines/errors.ts';
import type {
  PipelineCommand,
  PipelineInput,
  SttSessionEvent,
  SttSettings,
} from '../../machines/stt-session-events.ts';
import type { AudioFormat } from '../../machines/utterances.ts';
import type { ListeningPlane, ListeningSession } from '../../media/listening-plane.ts';
import type { RecognitionSettings, RecognitionStream, SpeechRecognition } from '../../speech/speech-recognition.ts';
import type { Logger } from '../logger.ts';
import type { LiveSessions } from './live-sessions.ts';

export interface PipelinePortOptions {
  listening: ListeningPlane;
  recognition: SpeechRecognition;
  sessions: LiveSessions;
  logger: Logger;
}

/**
 * The session machine's `pipeline` port: opens recognition and a listener, runs commands strictly in order and reports
 * utterances. Audio goes from the session's intake directly to the listener.
 */
export function pipelinePort({ listening, recognition, sessions, logger }: PipelinePortOptions) {
  return fromCallback<PipelineCommand, PipelineInput>(({ input, receive, sendBack }) => {
    const { sessionId } = input;
    const { intake, abort } = sessions.get(sessionId);
    const ended = new AbortController();
    const signal = AbortSignal.any([abort.signal, ended.signal]);
    let settings = input.settings;
    let stream: RecognitionStream | null = null;
    let listener: ListeningSession | null = null;
    const send = (event: SttSessionEvent) => {
      if (!signal.aborted) sendBack(event);
    };

    async function open(): Promise<void> {
      const format = formatOf(settings);
      requireSpeakersInOrder(settings);
      stream = await recognition.open({
        onEvent: (event) => {
          if (event.type === 'recognition.failed') send({ ...event, ...failureOf(event) });
          else send('lagMs' in event ? { ...event, lagMs: event.lagMs + intake.behindMs } : event);
        },
        signal,
        ...(recognitionSettings(settings) as RecognitionSettings),
        streamId: sessionId,
        mode: 'live',
        keywords: input.terms.map((term) => ({ term, weight: 1 })),
      });
      if (signal.aborted) return;
      const { utteranceEndMs, enhancement } = settings;
      listener = await listening.open({
        onEvent: send,
        onAnalysed: (processedMs) => intake.analysed(processedMs),
        signal,
        sessionId,
        format,
        utteranceEndMs,
        enhancement,
        utterances: stream.utterances,
      });
      if (signal.aborted) return;
      intake.open(listener, format);
      send({ type: 'pipeline.opened', ignoresTerms: ignoresTerms(stream) });
    }

    async function execute(command: PipelineCommand): Promise<void> {
      if (signal.aborted || stream === null || listener === null) return;
      if (command.type === 'finish') {
        const { snrDb } = await listener.finish();
        send({ type: 'pipeline.analysed', snrDb });
        return;
      }
      const { utteranceEndMs, enhancement } = command.change;
      const changed = { ...settings, ...command.change };
      requireSpeakersInOrder(changed);
      await stream.configure(recognitionSettings(command.change, changed));
      listener.configure({
        ...(utteranceEndMs !== undefined && { utteranceEndMs }),
        ...(enhancement !== undefined && { enhancement }),
      });
      settings = changed;
      send({ type: 'pipeline.configured', settings, ignoresTerms: ignoresTerms(stream) });
    }

    function ignoresTerms({ boostsKeywords }: RecognitionStream): boolean {
      return !boostsKeywords && input.terms.length > 0;
    }

    function onFailure(command: PipelineCommand['type'], error: unknown): void {
      if (signal.aborted) return;
      if (command === 'configure') {
        send({ type: 'pipeline.config_refused', ...reasonOf(error) });
      } else {
        logger.warn({ sessionId, err: error }, 'listener did not finish');
        send({ type: 'listening.lost', detail: 'the listener did not finish' });
      }
    }

    function reasonOf(error: unknown): { code: string; message: string } {
      if (error instanceof TandemError) return { code: error.code, message: error.message };
      return internal(error);
    }

    /** Hides engine errors, because they name files and models of this server. */
    function failureOf({ code, message }: { code: string; message: string }): { code: string; message: string } {
      return code === 'INTERNAL' ? internal(new Error(message)) : { code, message };
    }

    function internal(error: unknown): { code: string; message: string } {
      logger.error({ sessionId, err: error }, 'STT session failed');
      return { code: 'INTERNAL', message: 'Something went wrong here. Connect again.' };
    }

    function close(): void {
      stream?.close();
      listener?.close().catch((error) => logger.warn({ sessionId, err: error }, 'closing a listener failed'));
    }

    let queue = open().catch((error) => send({ type: 'pipeline.refused', ...reasonOf(error) }));
    receive((command) => {
      // The client's next audio may arrive in the same turn.
      if (command.type === 'finish') intake.close();
      queue = queue.then(() => execute(command)).catch((error) => onFailure(command.type, error));
    });
    return () => {
      intake.close();
      ended.abort();
      // Close also what was still opening, because the signal may have come too late.
      void queue.then(close);
    };
  });
}

export function formatOf({ encoding, sampleRateHz }: Pick<SttSettings, 'encoding' | 'sampleRateHz'>): AudioFormat {
  return { encoding: encoding === 'linear' ? 'linear16' : 'mulaw', sampleRateHz, channels: 1 };
}

/** A change of one setting may contradict the other. @throws TandemError VALIDATION_FAILED */
function requireSpeakersInOrder({ diarize, minSpeakers, maxSpeakers }: SttSettings): void {
  if (!diarize || minSpeakers === null || maxSpeakers === null || minSpeakers <= maxSpeakers) return;
  const details = [{ path: 'max_speakers', message: 'must not be below min_speakers' }];
  throw new TandemError('VALIDATION_FAILED', 'max_speakers must not be below min_speakers.', { details });
}

/** Selects the recognition settings of a change. Speaker counts are read with `all` the settings. */
function recognitionSettings(
  change: Partial<SttSettings>,
  { diarize, minSpeakers, maxSpeakers }: SttSettings = change as SttSettings,
): Partial<RecognitionSettings> {
  const isAboutSpeakers = 'diarize' in change || 'minSpeakers' in change || 'maxSpeakers' in change;
  return {
    ...(change.languages !== undefined && { languages: change.languages }),
    ...(change.interimEveryMs !== undefined && { hypothesisEveryMs: change.interimEveryMs }),
    ...(isAboutSpeakers && { diarization: diarize ? { by: 'voice', minSpeakers, maxSpeakers } : null }),
  };
}
