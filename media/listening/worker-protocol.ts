import type { MessagePort } from 'node:worker_threads';
import type { ListeningEvent } from '../../machines/utterances.ts';
import type { FileAnalysis, ListeningSettings, ListenToFileOptions, StreamAnalysis } from '../listening-plane.ts';
import type { ThreadDump } from '../session-threads.ts';

/**
 * Messages between the main thread and a listening worker. Audio arrives by notices; utterances leave by the session's
 * port.
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
  /** The answer ends the session. */
  'session.finish': { request: { sessionKey: number }; answer: StreamAnalysis };
  /** Also cancels a file, whose request then fails. */
  'session.close': { request: { sessionKey: number }; answer: undefined };
  /** Answered when the whole file is analysed. */
  'file.listen': {
    request: { sessionKey: number } & Omit<ListenToFileOptions, 'signal'>;
    answer: FileAnalysis;
  };
}

export interface ListeningDump extends ThreadDump {
  /** Why voices are detected by energy and tonality alone; null if the network is loaded. */
  voiceNetworkProblem: string | null;
  /** Why enhancement is unavailable; null if it is loaded. */
  noiseSuppressionProblem: string | null;
}

export type ListeningNotice =
  | { type: 'session.write'; sessionKey: number; bytes: Uint8Array<ArrayBuffer> }
  | { type: 'session.configure'; sessionKey: number; change: Partial<ListeningSettings> }
  | { type: 'session.end-utterance'; sessionKey: number };

/** `listening.lost`: only this session failed. When the thread dies, the main thread creates the event. */
export type ListeningReport =
  | ListeningEvent
  /** Duration of analysed audio since the session began, every `ANALYSED_EVERY_MS` of it. */
  | { type: 'audio.analysed'; analysedMs: number };

export const ANALYSED_EVERY_MS = 250;
