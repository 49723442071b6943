import type { MessagePort } from 'node:worker_threads';
import type { ListeningEvent } from '../../machines/utterances.ts';
import type { FileHeard, ListeningSettings, ListenToFileOptions, StreamHeard } from '../listening-plane.ts';
import type { CallToWorker, MessageFromWorker } from '../worker-messages.ts';

/**
 * All that crosses between the main thread and a listening worker. Audio goes in by notices, whose order towards
 * requests is kept; utterances leave by the port that came with the session.
 */

export interface ListeningCalls {
  'session.open': {
    request: { sessionKey: number; settings: ListeningSettings; utterances: MessagePort; inlet: MessagePort | null };
    answer: null;
  };
  /** The session is gone when it is answered. */
  'session.finish': { request: { sessionKey: number }; answer: StreamHeard };
  /** Also cancels a file, whose request then fails. */
  'session.close': { request: { sessionKey: number }; answer: null };
  /** Answered when the whole file has been heard. */
  'file.listen': {
    request: { sessionKey: number } & Omit<ListenToFileOptions, 'signal'>;
    answer: FileHeard;
  };
  'worker.ping': { request: object; answer: null };
  'worker.dump': { request: object; answer: ListeningDump };
  'worker.drain': { request: object; answer: null };
}

export interface ListeningDump {
  /** Why voices are told by energy and tonality alone; null when the network is there. */
  voiceNetworkProblem: string | null;
  /** Why enhancement does nothing; null when it can. */
  noiseSuppressionProblem: string | null;
  sessions: { sessionKey: number; session: unknown }[];
}

export type ListeningNotice =
  | { type: 'session.write'; sessionKey: number; bytes: Uint8Array<ArrayBuffer> }
  | { type: 'session.configure'; sessionKey: number; change: Partial<ListeningSettings> };

/** What a worker tells of a session, unasked. */
export type ListeningReport =
  | ListeningEvent
  /** So much of what was written has been heard since the session began; told every `HEARD_EVERY_MS` of it. */
  | { type: 'audio.heard'; heardMs: number };

export const HEARD_EVERY_MS = 250;

export type ToListeningWorker = CallToWorker<ListeningCalls> | ListeningNotice;

/** `listening.lost` is told by the main thread when the thread died, and by the worker when only one session broke. */
export type FromListeningWorker = MessageFromWorker<ListeningCalls, ListeningReport>;
