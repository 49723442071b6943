import type { MessagePort } from 'node:worker_threads';
import type { ListeningEvent } from '../../machines/utterances.ts';
import type { FileHeard, ListeningSettings, ListenToFileOptions, StreamHeard } from '../listening-plane.ts';
import type { ThreadDump } from '../session-threads.ts';

/**
 * What crosses between the main thread and a listening worker. Audio goes in by notices; utterances leave by the port
 * that came with the session.
 */
export interface ListeningThread {
  data: null;
  ready: null;
  calls: ListeningCalls;
  reports: { sessionKey: number; event: ListeningReport };
  notices: ListeningNotice;
}

export interface ListeningCalls {
  'session.open': {
    request: { sessionKey: number; settings: ListeningSettings; utterances: MessagePort; inlet: MessagePort | null };
    answer: undefined;
  };
  /** The session is gone when it is answered. */
  'session.finish': { request: { sessionKey: number }; answer: StreamHeard };
  /** Also cancels a file, whose request then fails. */
  'session.close': { request: { sessionKey: number }; answer: undefined };
  /** Answered when the whole file has been heard. */
  'file.listen': {
    request: { sessionKey: number } & Omit<ListenToFileOptions, 'signal'>;
    answer: FileHeard;
  };
}

export interface ListeningDump extends ThreadDump {
  /** Why voices are told by energy and tonality alone; null when the network is there. */
  voiceNetworkProblem: string | null;
  /** Why enhancement does nothing; null when it can. */
  noiseSuppressionProblem: string | null;
}

export type ListeningNotice =
  | { type: 'session.write'; sessionKey: number; bytes: Uint8Array<ArrayBuffer> }
  | { type: 'session.configure'; sessionKey: number; change: Partial<ListeningSettings> }
  | { type: 'session.end-utterance'; sessionKey: number };

/** `listening.lost`: only this session broke. When the thread dies, the main thread makes the event. */
export type ListeningReport =
  | ListeningEvent
  /** So much of what was written has been heard since the session began; told every `HEARD_EVERY_MS` of it. */
  | { type: 'audio.heard'; heardMs: number };

export const HEARD_EVERY_MS = 250;
