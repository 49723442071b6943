import type { MessagePort } from 'node:worker_threads';
import type { LegQuality, MediaEvent, RemoteMedia } from '../machines/events.ts';
import type { ThreadFailure } from '../runtime/thread-protocol.ts';
import type { DatagramIo } from './datagrams/open-datagrams.ts';
import type {
  KeyPresses,
  LegSample,
  MediaMeasurement,
  PartyId,
  PlayedSound,
  RecordingOptions,
  RecordingSummary,
  Routing,
  SendingEnd,
} from './media-plane.ts';

/**
 * Messages between the main thread and a media worker. Played sounds are the only audio among them, transferred without
 * a copy. A tap posts its audio directly to the consuming thread.
 */
export interface MediaThread {
  data: { rtpIo: DatagramIo; datagramsMemory: SharedArrayBuffer; loadMemory: SharedArrayBuffer };
  ready: null;
  calls: MediaCalls;
  reports: { sessionKey: number; event: MediaEvent<PartyId> | MediaMeasurement };
  notices: never;
}

/** Requests of the main thread, each with its answer. `sessionKey` identifies a session within its worker. */
export interface MediaCalls {
  'session.open': {
    request: {
      sessionKey: number;
      bindHost: string;
      rtpPorts: Readonly<Record<PartyId, number>>;
      rtpTimeoutMs: number;
    };
    answer: undefined;
  };
  'party.add': { request: { sessionKey: number; party: PartyId; rtpPort: number }; answer: undefined };
  'party.remove': { request: { sessionKey: number; party: PartyId }; answer: LegQuality | null };
  'party.connect': { request: { sessionKey: number; party: PartyId; remote: RemoteMedia }; answer: undefined };
  'routing.set': { request: { sessionKey: number; routing: Routing }; answer: undefined };
  /** Answered when the sound ends. */
  'party.play': {
    request: { sessionKey: number; party: PartyId; sound: PlayedSound };
    answer: SendingEnd;
  };
  'party.sendDigits': {
    request: { sessionKey: number; party: PartyId } & KeyPresses;
    answer: SendingEnd;
  };
  'party.stopPlaying': { request: { sessionKey: number; party: PartyId }; answer: undefined };
  'parties.beep': { request: { sessionKey: number; parties: readonly PartyId[] }; answer: undefined };
  'recording.start': { request: { sessionKey: number } & RecordingOptions; answer: undefined };
  'recording.pause': { request: { sessionKey: number; isPaused: boolean }; answer: undefined };
  'recording.stop': { request: { sessionKey: number }; answer: RecordingSummary | null };
  'tap.start': { request: { sessionKey: number; ports: Readonly<Record<PartyId, MessagePort>> }; answer: undefined };
  'tap.stop': { request: { sessionKey: number; party: PartyId }; answer: undefined };
  /** Starts to detect an answering machine. */
  'machine.detect': { request: { sessionKey: number; party: PartyId }; answer: undefined };
  'quality.measure': { request: { sessionKey: number }; answer: Record<PartyId, LegQuality | null> };
  'quality.sample': { request: { sessionKey: number }; answer: Record<PartyId, LegSample | null> };
  /** Starts or stops periodic measurements (`MediaMeasurement`). */
  'session.measure': { request: { sessionKey: number; isMeasured: boolean }; answer: undefined };
  /** Answered with the finished recording, if any, once the ports are free. */
  'session.close': { request: { sessionKey: number }; answer: RecordingSummary | null };
}

/** Codes of failed calls that the main thread handles. */
export const PORT_TAKEN = 'port-taken';
export const BAD_REMOTE_ADDRESS = 'remote-address';
/** A file cannot be read or written. The message is the system's error code, because its text would contain paths. */
export const STORAGE_FAILED = 'storage';

/** Converts the error of a file operation to a failure that the main thread can handle. */
export function storageFailure(error: unknown): ThreadFailure {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'UNKNOWN';
  return { code: STORAGE_FAILED, message: code };
}
