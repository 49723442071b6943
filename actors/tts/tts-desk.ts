import type { SpeechFormat, SpokenPart } from '../../speech/speech-synthesis.ts';
import type { SpeakingStyle } from '../../speech/voices/voice-recipe.ts';
import type { Charge } from '../../storage/ledger.ts';

/** Text to speech for `http/`. Implemented in `tts-desk.actor.ts`; HTTP tests use a fake. */
export interface TtsDesk {
  /** Languages with curated voices; ISO 639. */
  languages(): readonly { language: string; name: string }[];
  /**
   * Charges for a text and starts to synthesise it. Resolves with the first audio in hand, so a failure before that is
   * an error and costs nothing. Abort the signal when the client leaves. If the server ends the request, abort with a
   * `TandemError`; then nothing is owed either, except for `UNAUTHORIZED` (ended credentials).
   * @throws TandemError `INVALID_SSML`, `VALIDATION_FAILED` (nothing can be spoken), `VOICE_NOT_FOUND`,
   * `VOICE_NOT_READY`, `INSUFFICIENT_CREDITS`, `TTS_UNAVAILABLE`, `SHUTTING_DOWN`; the signal's reason
   */
  speak(request: SpeakTextRequest, signal: AbortSignal): Promise<SynthesisStream>;
  /**
   * Opens synthesis of streamed text.
   * @throws TandemError `VOICE_NOT_FOUND` or `VOICE_NOT_READY` for a given voice id, `SHUTTING_DOWN`
   */
  openLive(request: LiveSpeechRequest): Promise<LiveSpeech>;
  /** Accepts no further requests. Resolves when running ones are over or storage is out of reach. */
  close(): Promise<void>;
}

export interface SpeakTextRequest {
  workspaceId: string;
  userId: number;
  apiKeyId: number | null;
  /** Plain text or SSML. */
  text: string;
  /** Null: the default voice. */
  voiceId: string | null;
  style: SpeakingStyle;
  format: SpeechFormat;
}

/** A charged synthesis request whose audio is being produced. */
export interface SynthesisStream {
  streamId: string;
  voiceId: string;
  characters: number;
  charge: Charge;
  /**
   * Audio chunks, produced as fast as they are consumed.
   * @throws TandemError `TTS_UNAVAILABLE` or `VALIDATION_FAILED` (a sentence is too long, or the voice can speak none
   * of it) after the refund, or if storage takes too long; the signal's reason
   */
  parts: AsyncGenerator<SpokenPart, void>;
}

/** Encodings that can continue with the audio of the next text. */
export type LiveSpeechEncoding = 'LINEAR16' | 'MULAW' | 'ALAW';

export interface LiveSpeechRequest extends Omit<SpeakTextRequest, 'text' | 'format'> {
  format: { encoding: LiveSpeechEncoding; sampleRateHz: number };
  listener: LiveSpeechListener;
}

export interface LiveSpeechListener {
  /** Resolves when the client is ready for more. */
  onAudio(audio: Uint8Array): Promise<void>;
  /** Words with times in seconds since the start of all audio. */
  onWords(words: { word: string; start: number; end: number }[]): void;
  onCharge(spoken: Pick<SynthesisStream, 'characters' | 'charge' | 'voiceId'>): void;
  onFlushed(sequenceId: number): void;
  onCleared(sequenceId: number): void;
}

/** Synthesises streamed text, such as the output of a language model, sentence by sentence. */
export interface LiveSpeech {
  /**
   * Resolves when everything was synthesised after `finish`, or after `end`. Rejects with the errors of
   * `TtsDesk.speak`.
   */
  readonly ended: Promise<void>;
  /** @throws TandemError `VALIDATION_FAILED` if too much text waits */
  say(text: string): void;
  /** Completes the open sentence. */
  flush(): void;
  /** Stops at once and drops all pending text. The current text stays charged. */
  clear(): void;
  finish(): void;
  /** Ends at once. The reason decides on the charge of the current text, as in `TtsDesk.speak`. */
  end(reason: unknown): void;
}
