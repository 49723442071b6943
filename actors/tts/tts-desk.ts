import type { SpeechFormat, SpokenPart } from '../../speech/speech-synthesis.ts';
import type { SpeakingStyle } from '../../speech/voices/voice-recipe.ts';
import type { Charge } from '../../storage/ledger.ts';

/** Speech from text as `http/` sees it. Implemented in `tts-desk.actor.ts`; HTTP tests use a fake of this interface. */
export interface TtsDesk {
  /** In which somebody took care of the voices; ISO 639. */
  languages(): readonly { language: string; name: string }[];
  /**
   * Charges for the text and begins to speak it. Resolves with the first of it in hand, so that whatever is wrong by
   * then is a refusal and nothing is owed. The signal is to abort when nobody listens any more: with a `TandemError`
   * where that is our doing, and then nothing is owed either; whose credentials end (`UNAUTHORIZED`) has left by themselves.
   * @throws TandemError `INVALID_SSML`, `VALIDATION_FAILED` (nothing of the text can be said), `VOICE_NOT_FOUND`,
   * `VOICE_NOT_READY`, `INSUFFICIENT_CREDITS`, `TTS_UNAVAILABLE`, `SHUTTING_DOWN`; the signal's reason
   */
  speak(request: SpeakTextRequest, signal: AbortSignal): Promise<SpokenText>;
  /**
   * Opens speech of text that comes in pieces.
   * @throws TandemError `VOICE_NOT_FOUND` or `VOICE_NOT_READY` of a voice that is named, `SHUTTING_DOWN`
   */
  openLive(request: LiveSpeechRequest): Promise<LiveSpeech>;
  /** No stream begins any more; resolves when those that run are over, or storage is out of reach. */
  close(): Promise<void>;
}

export interface SpeakTextRequest {
  workspaceId: string;
  userId: number;
  apiKeyId: number | null;
  /** Plain, or SSML. */
  text: string;
  /** Null: the usual voice. */
  voiceId: string | null;
  style: SpeakingStyle;
  format: SpeechFormat;
}

export interface SpokenText {
  streamId: string;
  voiceId: string;
  /** That were charged for. */
  characters: number;
  charge: Charge;
  /**
   * What is spoken, as fast as it is taken.
   * @throws TandemError `TTS_UNAVAILABLE` or `VALIDATION_FAILED` (a sentence is too long, the voice can say nothing of
   * it) once the charge was given back, or storage takes too long; the signal's reason
   */
  parts: AsyncGenerator<SpokenPart, void>;
}

/** Encodings whose audio can be continued by the audio of the next text. */
export type LiveSpeechEncoding = 'LINEAR16' | 'MULAW' | 'ALAW';

export interface LiveSpeechRequest extends Omit<SpeakTextRequest, 'text' | 'format'> {
  format: { encoding: LiveSpeechEncoding; sampleRateHz: number };
  listener: LiveSpeechListener;
}

export interface LiveSpeechListener {
  /** Resolves when the client has taken the audio. */
  onAudio(audio: Uint8Array): Promise<void>;
  /** Words, with their times in seconds since the begin of all audio. */
  onWords(words: { word: string; start: number; end: number }[]): void;
  onCharge(spoken: Pick<SpokenText, 'characters' | 'charge' | 'voiceId'>): void;
  /** All text before the flush of this number was spoken. */
  onFlushed(sequenceId: number): void;
  onCleared(sequenceId: number): void;
}

/**
 * Speaks text that comes in pieces, such as the answer of a language model while it is generated. Each sentence is
 * spoken once it is complete.
 */
export interface LiveSpeech {
  /** Resolves when all was spoken after `finish`, or when it was ended. Rejects with what went wrong, as `TtsDesk.speak`. */
  readonly ended: Promise<void>;
  /** @throws TandemError `VALIDATION_FAILED` if too much text waits */
  say(text: string): void;
  /** Completes the open sentence. */
  flush(): void;
  /** Stops at once, and forgets all text that was not spoken. The text that is being spoken stays charged. */
  clear(): void;
  /** Speaks what was received, then ends. */
  finish(): void;
  /** Ends at once. The reason decides on the charge of the current text, as in `TtsDesk.speak`. */
  end(reason: unknown): void;
}
