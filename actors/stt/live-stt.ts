import type { SttMessage } from '../../machines/stt-messages.ts';
import type { SttEnding, SttSettings, TalkContext } from '../../machines/stt-session-events.ts';
import type { AudioFormat } from '../../machines/utterances.ts';

export type { ErrorMessage, SttMessage } from '../../machines/stt-messages.ts';
export type { SttSettings, TalkContext } from '../../machines/stt-session-events.ts';

/**
 * Live transcription as `http/` sees it. Implemented in `live-stt.actor.ts`. Messages arrive parsed: defaults are
 * filled in, values are clamped.
 */
export interface LiveStt {
  /** Begins a session of somebody who is known and has funds. It waits for its `start`. */
  open(options: OpenLiveSession): LiveSession;
  /** ISO 639-1 codes that can be recognised here. */
  languages(): readonly string[];
}

export interface OpenLiveSession {
  /** Whom it is billed to, and for whom. */
  workspaceId: string;
  userId: number;
  apiKeyId: number | null;
  /** Whether the plan includes refinement. */
  mayRefine: boolean;
  /** What the client is to be told, in order. */
  onMessage: (message: SttMessage) => void;
  /** Nothing is told after it: close the connection with this. */
  onClosed: (close: { code: number; reason: string }) => void;
}

export interface LiveSession {
  readonly id: string;
  send(command: SessionCommand): void;
  /**
   * Takes the bytes over: the caller must not use the buffer again. False before the client was told that the session
   * has started.
   */
  audio(bytes: Uint8Array<ArrayBuffer>, format: AudioFormat): boolean;
  /** Ends it from outside. Idempotent. */
  end(reason: Extract<SttEnding['kind'], 'disconnected' | 'credentials' | 'shutdown'>): void;
  /** Resolves when nothing of it is left. */
  readonly ended: Promise<void>;
}

export type SessionCommand =
  | { type: 'start'; settings: SttSettings; talk: TalkContext | null }
  /** Answered by one `config_updated`, or by one `error` and no change. */
  | { type: 'config'; change: Partial<SttSettings> }
  /** Ends the open utterance: its final follows at once. Speech that comes later begins the next one. */
  | { type: 'finalize' }
  /** The client has nothing to say: the time in which it must start begins anew. */
  | { type: 'keepalive' }
  | { type: 'stop' };
