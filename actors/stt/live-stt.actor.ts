import { randomUUID } from 'node:crypto';
import { createActor, type InspectionEvent } from 'xstate';
import { closeOf, endingError, RECOGNITION_LOST } from '../../machines/stt-messages.ts';
import { sttSessionMachine } from '../../machines/stt-session.machine.ts';
import type { SttSessionEvent } from '../../machines/stt-session-events.ts';
import type { ListeningPlane } from '../../media/listening-plane.ts';
import type { Clock } from '../../runtime/clock.ts';
import { describeLanguage, findTranscriptionLanguage, isArabicDialect } from '../../speech/languages.ts';
import type { Refine } from '../../speech/refinement.ts';
import type { SpeechRecognition } from '../../speech/speech-recognition.ts';
import type { Sql } from '../../storage/database.ts';
import type { Deliverer } from '../callbacks/deliverer.ts';
import type { Logger } from '../logger.ts';
import { AudioIntake } from './audio-intake.ts';
import { createLiveSessions } from './live-sessions.ts';
import type { LiveSession, LiveStt, OpenLiveSession, SessionCommand } from './live-stt.ts';
import { billingPort } from './stt-billing.ts';
import { conclusionPort } from './stt-conclusion.ts';
import { pipelinePort } from './stt-pipeline.ts';
import { refinementPort } from './stt-refinement.ts';

export interface LiveSttOptions {
  sql: Sql;
  listening: ListeningPlane;
  recognition: SpeechRecognition;
  refine: Refine | null;
  deliverer: Pick<Deliverer, 'enqueue'>;
  clock: Clock;
  logger: Logger;
  inspect?: (event: InspectionEvent) => void;
}

export interface LiveSttDesk extends LiveStt {
  count(): number;
  /** Shuts down all sessions, new ones too, and waits until they are over. */
  close(): Promise<void>;
}

/** Provides the session machine with its ports, once. Starts one root actor for each session. */
export function createLiveStt(options: LiveSttOptions): LiveSttDesk {
  const { recognition, clock, logger } = options;
  const sessions = createLiveSessions();
  const parts = { ...options, sessions };
  const machine = sttSessionMachine.provide({
    actors: {
      pipeline: pipelinePort(parts),
      bill: billingPort(parts),
      refine: refinementPort(parts),
      conclude: conclusionPort(parts),
    },
  });
  let isClosing = false;

  function open({ mayRefine, onMessage, onClosed, ...owner }: OpenLiveSession): LiveSession {
    const id = randomUUID();
    const intake = new AudioIntake(clock);
    const ended = Promise.withResolvers<void>();
    const actor = createActor(machine, {
      input: { sessionId: id, mayRefine },
      clock,
      ...(options.inspect && { inspect: options.inspect }),
    });
    // XState warns about events for an ended actor, and socket events may arrive late.
    const send = (event: SttSessionEvent) => {
      if (actor.getSnapshot().status === 'active') actor.send(event);
    };
    const shutDown = () => send({ type: 'end.requested', ending: { kind: 'shutdown' } });
    const leave = () => {
      sessions.remove(id);
      ended.resolve();
    };
    actor.on('message', ({ message }) => onMessage(message));
    actor.on('closed', ({ code, reason }) => {
      const { workspaceId } = owner;
      logger.info(
        { sessionId: id, workspaceId, code, reason, receivedMs: intake.receivedMs },
        'live transcription ended',
      );
      onClosed({ code, reason });
    });
    actor.subscribe({
      complete: leave,
      error(error) {
        logger.error({ sessionId: id, err: error }, 'STT session actor failed');
        onMessage(endingError(RECOGNITION_LOST)!);
        onClosed(closeOf(RECOGNITION_LOST));
        leave();
      },
    });
    sessions.add({ ...owner, id, intake, abort: new AbortController(), prices: null, shutDown });
    actor.start();
    if (isClosing) shutDown();

    function execute(command: SessionCommand): void {
      if (command.type === 'finalize') {
        // Take the path of the audio, so that no audio overtakes it.
        if (!intake.endUtterance()) onMessage(NOT_STARTED);
        return;
      }
      const event = eventOf(command);
      if ('refusal' in event) onMessage({ type: 'error', code: 'unsupported_language', message: event.refusal });
      else send(event);
    }

    return {
      id,
      send: execute,
      audio(bytes, format) {
        const outcome = intake.write(bytes, format);
        if (outcome === 'flooding') send({ type: 'end.requested', ending: { kind: 'overloaded' } });
        return outcome !== 'too early';
      },
      end: (kind) => send({ type: 'end.requested', ending: { kind } }),
      ended: ended.promise,
    };
  }

  return {
    open,
    languages: () => recognition.languages().map(({ code }) => code),
    count: () => sessions.list().length,
    async close() {
      isClosing = true;
      for (const session of sessions.list()) session.shutDown();
      await sessions.idle();
    },
  };
}

const NOT_STARTED = { type: 'error', code: 'invalid_state', message: 'There is no started session.' } as const;

function eventOf(command: Exclude<SessionCommand, { type: 'finalize' }>): SttSessionEvent | { refusal: string } {
  if (command.type === 'keepalive') return { type: 'client.alive' };
  if (command.type === 'stop') return { type: 'stop.requested' };
  const { languages = null } = command.type === 'start' ? command.settings : command.change;
  const refusal = languageRefusal(languages);
  if (refusal !== null) return { refusal };
  if (command.type === 'config') return { type: 'config.requested', change: command.change };
  return { type: 'start.requested', settings: command.settings, talk: command.talk };
}

/** Reason to reject the languages; null if the catalogue has all of them. An engine may still lack one. */
function languageRefusal(languages: readonly string[] | null): string | null {
  for (const code of languages ?? []) {
    if (isArabicDialect(code)) return `${JSON.stringify(code)} is a dialect: use "ar" for Arabic.`;
    const language = findTranscriptionLanguage(code);
    if (language === null)
      return `${JSON.stringify(code)} is not the ISO 639-1 code of a language that is transcribed.`;
    if (!language.isLive) return `${describeLanguage(code)} cannot be transcribed live. POST /stt takes files in it.`;
  }
  return null;
}
