import type { SttMessage } from '../../machines/stt-messages.ts';
import type { SttEnding, SttSettings, TalkContext } from '../../machines/stt-session-events.ts';
import type { AudioFormat } from '../../machines/utterances.ts';

export type { ErrorMessage, SttMessage } from '../../machines/stt-messages.ts';
export type { SttSettings, TalkContext } from '../../machines/stt-session-events.ts';

/**
 * Live transcription for `http/`. Implemented in `live-stt.actor.ts`. Messages are already parsed: defaults are filled
 * in, values are clamped.
 */
export interface LiveStt {
  /** Opens a session for an authenticated client with funds. It waits for `start`. */
  open(options: OpenLiveSession): LiveSession;
  /** ISO 639-1 codes that this server recognises. */
  languages(): readonly string[];
}

export interface OpenLiveSession {
  /** Workspace to charge. */
  workspaceId: string;
  userId: number;
  apiKeyId: number | null;
  mayRefine: boolean;
  /** Receives messages for the client, in order. */
  onMessage: (message: SttMessage) => void;
  /** Called last: close the connection with this. */
  onClosed: (close: { code: number; reason: string }) => void;
}

export interface LiveSession {
  readonly id: string;
  send(command: SessionCommand): void;
  /** Takes ownership of the bytes. False before the client received the start of the session. */
  audio(bytes: Uint8Array<ArrayBuffer>, format: AudioFormat): boolean;
  /** Ends the session. Idempotent. */
  end(reason: Extract<SttEnding['kind'], 'disconnected' | 'credentials' | 'shutdown'>): void;
  readonly ended: Promise<void>;
}

export type SessionCommand =
  | { type: 'start'; settings: SttSettings; talk: TalkContext | null }
  /** Leads to one `config_updated`, or to one `error` without a change. */
  | { type: 'config'; change: Partial<SttSettings> }
  /** Ends the open utterance: its final follows at once. Later speech begins the next utterance. */
  | { type: 'finalize' }
  /** Restarts the time in which the session must start. */
  | { type: 'keepalive' }
  | { type: 'stop' };
