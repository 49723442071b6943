import type { MessagePort } from 'node:worker_threads';
import type { LegName, LegQuality, MediaEvent, RemoteMedia } from '../machines/events.ts';
import type { MediaPath, PlaybackEnd, RecordingSummary } from './media-plane.ts';
import type { CallToWorker, MessageFromWorker } from './worker-messages.ts';

/**
 * All that crosses between the main thread and a media worker. Requests are answered once each, with `done` or
 * `failed`; events come whenever they happen. Of audio only what is played crosses, in one piece and without being copied:
 * a tap posts what is said to whichever thread has the other end of its port.
 */

/** What the main thread may ask, and what the answer holds. */
export interface WorkerCalls {
  'session.open': {
    request: {
      sessionKey: number;
      bindHost: string;
      rtpPorts: Record<LegName, number>;
      rtpTimeoutMs: number;
    };
    answer: null;
  };
  'leg.connect': { request: { sessionKey: number; leg: LegName; remote: RemoteMedia }; answer: null };
  'path.set': { request: { sessionKey: number; path: MediaPath }; answer: null };
  /** Answered when it is over. */
  'leg.play': {
    request: { sessionKey: number; leg: LegName; samples: Int16Array<ArrayBuffer>; over: boolean };
    answer: PlaybackEnd;
  };
  'recording.start': { request: { sessionKey: number; filePath: string }; answer: null };
  'recording.stop': { request: { sessionKey: number }; answer: RecordingSummary | null };
  'tap.start': { request: { sessionKey: number; ports: Record<LegName, MessagePort> }; answer: null };
  'tap.stop': { request: { sessionKey: number }; answer: null };
  'quality.measure': { request: { sessionKey: number }; answer: Record<LegName, LegQuality | null> };
  /** Answered when the ports are free and a recording, which the answer tells of, is finished. */
  'session.close': { request: { sessionKey: number }; answer: RecordingSummary | null };
  'worker.ping': { request: object; answer: null };
  'worker.dump': { request: object; answer: { sessionKey: number; session: unknown }[] };
  'worker.drain': { request: object; answer: null };
}

export type WorkerCall = keyof WorkerCalls;

export type ToWorker = CallToWorker<WorkerCalls>;

export type FromWorker = MessageFromWorker<WorkerCalls, MediaEvent>;
