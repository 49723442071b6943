import type { SpeechFormat, SpokenClause } from '../../speech/synthesizer.ts';
import type { Charge } from '../../storage/ledger.ts';

/** Speech from text as `http/` sees it. Implemented by `tts-stream.actor.ts`; HTTP tests use a fake of this interface. */
export interface TtsDesk {
  /**
   * Charges for the text and begins to speak it. Resolves with the first clause in hand, so that whatever is wrong by
   * then is a refusal and nothing is owed. The signal is to abort when nobody listens any more: with a `TandemError`
   * where that is our doing, and then nothing is owed either.
   * @throws TandemError `INSUFFICIENT_CREDITS`, `TTS_UNAVAILABLE`, `SHUTTING_DOWN`; the signal's reason
   */
  speak(request: SpeakTextRequest, signal: AbortSignal): Promise<SpokenText>;
  /** No stream begins any more; resolves when those that run are over, or storage is out of reach. */
  close(): Promise<void>;
}

export interface SpeakTextRequest {
  workspaceId: string;
  userId: number;
  apiKeyId: number | null;
  text: string;
  /** As the engine names it. */
  voice: string;
  wordsPerMinute: number;
  format: SpeechFormat;
}

export interface SpokenText {
  streamId: string;
  charge: Charge;
  /**
   * What is spoken, as fast as it is taken.
   * @throws TandemError `TTS_UNAVAILABLE` once the charge was given back, the signal's reason
   */
  clauses: AsyncGenerator<SpokenClause, void>;
}
