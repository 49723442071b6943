import type { MessagePort } from 'node:worker_threads';
import type { LegName, LegQuality, MediaEvent, RemoteMedia } from '../machines/events.ts';
import type { MediaPath, RecordingSummary } from './media-plane.ts';

/**
 * All that crosses between the main thread and a media worker. Requests are answered once each, with `done` or
 * `failed`; events come whenever they happen. Audio never
 * crosses: a tap posts it to whichever thread has the other end of its port.
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
  'recording.start': { request: { sessionKey: number; filePath: string }; answer: null };
  'recording.stop': { request: { sessionKey: number }; answer: RecordingSummary | null };
  'tap.start': { request: { sessionKey: number; ports: Record<LegName, MessagePort> }; answer: null };
  'tap.stop': { request: { sessionKey: number }; answer: null };
  'quality.measure': { request: { sessionKey: number }; answer: Record<LegName, LegQuality | null> };
  /** Answered when the ports are free and a recording, which the answer tells of, is finished. */
  'session.close': { request: { sessionKey: number }; answer: RecordingSummary | null };
  /** Shows that the thread is not stuck. */
  'worker.ping': { request: object; answer: null };
  'worker.dump': { request: object; answer: { sessionKey: number; session: unknown }[] };
  /** Closes every session; the thread can then be terminated without loss. */
  'worker.drain': { request: object; answer: null };
}

export type WorkerCall = keyof WorkerCalls;

export type ToWorker = {
  [Call in WorkerCall]: { type: Call; requestId: number } & WorkerCalls[Call]['request'];
}[WorkerCall];

export type FromWorker =
  /** The thread has loaded and listens. */
  | { type: 'ready' }
  | { type: 'event'; sessionKey: number; event: MediaEvent }
  | { type: 'done'; requestId: number; answer: WorkerCalls[WorkerCall]['answer'] }
  | { type: 'failed'; requestId: number; failure: WorkerFailure };

/** Why a request failed. Errors lose their class on the way between threads, so they cross as this. */
export type WorkerFailure =
  /** The pair that starts at `rtpPort` is somebody else's. */
  | { kind: 'port-taken'; rtpPort: number; detail: string }
  /** The remote address cannot be used. */
  | { kind: 'remote-address'; detail: string }
  /** The recording's file cannot be written. */
  | { kind: 'storage'; detail: string }
  /** The session is not there any more, or not in a state for this. */
  | { kind: 'state'; detail: string }
  /** The thread died or did not answer. Made by the main thread. */
  | { kind: 'worker-lost'; detail: string }
  | { kind: 'unexpected'; detail: string };
