import type { MessagePort } from 'node:worker_threads';
import type { LegName, LegQuality, MediaEvent, RemoteMedia } from '../machines/events.ts';
import type { ThreadFailure } from '../runtime/thread-protocol.ts';
import type { MediaPath, PlaybackEnd, RecordingSummary } from './media-plane.ts';

/**
 * What crosses between the main thread and a media worker. The only audio that crosses is what is played, in one piece
 * and without being copied: a tap posts a leg's audio to the thread at the other end of its port.
 */
export interface MediaThread {
  data: null;
  ready: null;
  calls: MediaCalls;
  reports: { sessionKey: number; event: MediaEvent };
  notices: never;
}

export interface MediaCalls {
  'session.open': {
    request: {
      sessionKey: number;
      bindHost: string;
      rtpPorts: Record<LegName, number>;
      rtpTimeoutMs: number;
    };
    answer: undefined;
  };
  'leg.connect': { request: { sessionKey: number; leg: LegName; remote: RemoteMedia }; answer: undefined };
  'path.set': { request: { sessionKey: number; path: MediaPath }; answer: undefined };
  /** Answered when it is over. */
  'leg.play': {
    request: { sessionKey: number; leg: LegName; samples: Int16Array<ArrayBuffer>; over: boolean };
    answer: PlaybackEnd;
  };
  'recording.start': { request: { sessionKey: number; filePath: string }; answer: undefined };
  'recording.stop': { request: { sessionKey: number }; answer: RecordingSummary | null };
  'tap.start': { request: { sessionKey: number; ports: Record<LegName, MessagePort> }; answer: undefined };
  'tap.stop': { request: { sessionKey: number }; answer: undefined };
  'quality.measure': { request: { sessionKey: number }; answer: Record<LegName, LegQuality | null> };
  /** Answered with the finished recording, if there is one, when the ports are free. */
  'session.close': { request: { sessionKey: number }; answer: RecordingSummary | null };
}

/** Codes of failed calls that the main thread handles. */
export const PORT_TAKEN = 'port-taken';
export const BAD_REMOTE_ADDRESS = 'remote-address';
/** A file cannot be read or written. The message is the system's error code: its text would tell paths. */
export const STORAGE_FAILED = 'storage';

export function storageFailure(error: unknown): ThreadFailure {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'UNKNOWN';
  return { code: STORAGE_FAILED, message: code };
}
