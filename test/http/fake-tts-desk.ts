import { openLiveSpeech, type TextReader } from '../../actors/tts/live-speech.ts';
import type {
  LiveSpeech,
  LiveSpeechRequest,
  SpeakTextRequest,
  SynthesisStream,
  TtsDesk,
} from '../../actors/tts/tts-desk.ts';
import { TandemError } from '../../machines/errors.ts';
import type { SpokenPart } from '../../speech/speech-synthesis.ts';

/** Returns the audio that the test sets and records requests. */
export class FakeTtsDesk implements TtsDesk {
  asked: SpeakTextRequest[] = [];
  parts: SpokenPart[] = [
    { audio: Buffer.from([1, 0, 2, 0]), durationMs: 250, words: [{ word: 'Hello', startMs: 0, endMs: 250 }] },
    { audio: Buffer.from([3, 0]), durationMs: 375, words: [{ word: 'there.', startMs: 255, endMs: 370 }] },
  ];
  /** Thrown before the first audio, or after all chunks. */
  refusal: unknown = null;
  failure: unknown = null;
  signal: AbortSignal | null = null;

  languages() {
    return [
      { language: 'en', name: 'English' },
      { language: 'hi', name: 'Hindi' },
    ];
  }

  async speak(request: SpeakTextRequest, signal: AbortSignal): Promise<SynthesisStream> {
    this.asked.push(request);
    this.signal = signal;
    if (this.refusal !== null) throw this.refusal;
    const { parts, failure } = this;
    async function* said() {
      yield* parts;
      if (failure !== null) throw failure;
    }
    const charge = {
      entryId: '5b0f3c9e-6a0c-4d5c-8b6e-0d2f7a1c9e34',
      chargedNano: 165_000n,
      balanceBeforeNano: 1_000_000_000n,
      balanceAfterNano: 999_835_000n,
    };
    return { streamId: 'tts_1', voiceId: 'c0ffee', characters: 11, charge, parts: said() };
  }

  async openLive(request: LiveSpeechRequest): Promise<LiveSpeech> {
    return await openLiveSpeech({ ...request, speak: (...asked) => this.speak(...asked), readerFor });
  }

  async close(): Promise<void> {}
}

/** Splits sentences at periods. */
async function readerFor({ voiceId }: { voiceId: string | null }): Promise<TextReader> {
  if (voiceId === 'nobody') throw new TandemError('VOICE_NOT_FOUND', 'No such voice.');
  const clauseOf = ({ 0: text, index }: RegExpExecArray) => ({
    end: index + text.length,
    isSayable: /\w/.test(text),
    endsSentence: text.endsWith('.'),
    pauseAfterMs: 250,
  });
  return { voiceId: voiceId ?? 'c0ffee', clausesOf: (text) => [...text.matchAll(/[^.]+\.?|\./g)].map(clauseOf) };
}
