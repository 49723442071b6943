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
