import { ApiError } from '../../app/api-error.ts';
import { currentWorkspaceId } from '../../app/workspace.ts';
import { transcriptionText } from '../../text/speech.ts';
import { MicrophoneError, openMicrophone } from '../audio/microphone.ts';
import { mulawOf } from '../audio/mulaw.ts';
import type { SocketMessage } from './transcript.ts';

export interface LiveSettings {
  /** Null: detected. */
  language: string | null;
  terms: readonly string[];
  encoding: 'linear' | 'mulaw';
  diarize: boolean;
}

export const SAMPLE_RATES = { linear: 16_000, mulaw: 8_000 } as const;
export const FRAME_MS = 60;
/** Timeout of the last final. */
const LAST_WORDS_MS = 20_000;

export function startMessageOf({ language, terms, encoding, diarize }: LiveSettings) {
  return {
    type: 'start',
    languages: language === null ? null : [language],
    ...(terms.length > 0 && { context: { terms } }),
    config: {
      encoding,
      sample_rate: SAMPLE_RATES[encoding],
      interim_results_frequency: 300,
      ...(diarize && { diarize }),
    },
  };
}

export type Phase = 'idle' | 'asking' | 'connecting' | 'listening' | 'stopping' | 'ended';

interface LiveSessionEvents {
  onPhase: (phase: Phase) => void;
  onMessage: (message: SocketMessage) => void;
  /** 0 to 1 for each frame. */
  onLevel: (level: number) => void;
  /** The session continues, unless the phase says that it ended. */
  onFailure: (error: Error) => void;
}

/** A session from microphone to transcript. Emits no events after `close`. */
export class LiveSession {
  readonly #settings: LiveSettings;
  readonly #events: LiveSessionEvents;
  #microphone: { close: () => void } | null = null;
  #socket: WebSocket | null = null;
  #phase: Phase = 'asking';
  #hasFailed = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(settings: LiveSettings, events: LiveSessionEvents) {
    this.#settings = settings;
    this.#events = events;
    this.#move('asking');
    void this.#open();
  }

  /** Transcribes the remaining speech, then ends. */
  stop(): void {
    if (this.#phase !== 'listening') {
      this.#end();
      return;
    }
    this.#silence();
    this.#move('stopping');
    this.#send({ type: 'stop' });
    this.#timer = setTimeout(() => this.#socket?.close(), LAST_WORDS_MS);
  }

  /** Ends at once. */
  close(): void {
    this.#phase = 'ended';
    this.#silence();
    this.#socket?.close();
    clearTimeout(this.#timer);
  }

  async #open(): Promise<void> {
    try {
      const microphone = await openMicrophone({
        sampleRateHz: SAMPLE_RATES[this.#settings.encoding],
        frameMs: FRAME_MS,
        onFrame: (samples) => this.#takeFrame(samples),
        onLost: () => {
          this.#events.onFailure(new Error(transcriptionText.microphoneLost));
          this.stop();
        },
      });
      if (this.#phase === 'ended') {
        microphone.close();
        return;
      }
      this.#microphone = microphone;
      this.#connect();
    } catch (error) {
      this.#fail(error instanceof MicrophoneError ? error : new MicrophoneError('busy', { cause: error }));
    }
  }

  /** The session cookie authenticates the handshake. */
  #connect(): void {
    this.#move('connecting');
    const url = new URL('/ws/stt', location.origin.replace(/^http/, 'ws'));
    url.searchParams.set('workspace_id', currentWorkspaceId() ?? '');
    const socket = new WebSocket(url);
    this.#socket = socket;
    socket.onmessage = ({ data }: MessageEvent<string>) => this.#take(JSON.parse(data) as SocketMessage);
    socket.onclose = ({ code }) => {
      if (this.#phase === 'ended') return;
      if (code !== 1000 && !this.#hasFailed) this.#events.onFailure(new Error(transcriptionText.lost));
      this.#end();
    };
  }

  #take(message: SocketMessage): void {
    if (this.#phase === 'ended') return;
    if (message.type === 'error') {
      this.#takeError(message);
      return;
    }
    if (message.server_info !== undefined) this.#send(startMessageOf(this.#settings));
    if (message.type === 'session_started') this.#move('listening');
    this.#events.onMessage(message);
  }

  /** One error nests its fields and occurs mid-session. An error before the session starts is final. */
  #takeError(message: SocketMessage): void {
    const { code, message: text } = (message.error ?? message) as { code: string; message: string };
    const error = new ApiError({ status: STATUSES[code] ?? 503, code, message: text });
    if (this.#phase === 'connecting') this.#fail(error);
    else {
      this.#hasFailed = true;
      this.#events.onFailure(error);
    }
  }

  #takeFrame(samples: Int16Array): void {
    this.#events.onLevel(levelOf(samples));
    if (this.#phase !== 'listening') return;
    if (this.#settings.encoding === 'mulaw') this.#socket?.send(mulawOf(samples));
    else {
      const bytes = new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength);
      this.#send({ type: 'audio', audio: base64Of(bytes), encoding: 'linear', sample_rate: SAMPLE_RATES.linear });
    }
  }

  #send(message: object): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message));
  }

  #fail(error: Error): void {
    if (this.#phase === 'ended') return;
    this.#events.onFailure(error);
    this.#end();
  }

  #end(): void {
    this.#move('ended');
    this.close();
  }

  #silence(): void {
    this.#microphone?.close();
    this.#microphone = null;
    this.#events.onLevel(0);
  }

  #move(phase: Phase): void {
    this.#phase = phase;
    this.#events.onPhase(phase);
  }
}

/** HTTP statuses that have their own error state. */
const STATUSES: Record<string, number> = { INSUFFICIENT_CREDITS: 402, FORBIDDEN: 403, AUTH_FAILED: 401 };

const FLOOR_DB = 60;

/** Mean power in decibels: 0 is -60 dBFS, 1 is full scale. */
function levelOf(samples: Int16Array): number {
  const power = samples.reduce((sum, sample) => sum + sample * sample, 0) / samples.length / 0x8000 ** 2;
  return Math.max(0, 1 + (10 * Math.log10(power + 1e-12)) / FLOOR_DB);
}

function base64Of(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes));
}
