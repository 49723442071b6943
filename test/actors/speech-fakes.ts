import type { SpeakableVoice } from '../../actors/voices/voice-desk.ts';
import type { SpeakRequest, SpokenPart } from '../../speech/speech-synthesis.ts';
import { PLAIN_CHARACTER } from '../../speech/voices/voice-recipe.ts';

export const VOICE: SpeakableVoice = {
  id: '0b8fca0e-5d1e-5b1f-9a37-4a1c3f0a9d11',
  recipe: {
    engine: 'espeak-ng',
    model: 'espeak-ng',
    engineVoice: 'en-us',
    language: 'en-us',
    own: null,
    character: PLAIN_CHARACTER,
    reference: null,
  },
};

/** One voice that hums a fixed time per word; the test can make it fail or wait. */
export class FakeSpeech {
  readonly spoken: string[] = [];
  wordMs = 100;
  /** May throw to reject the voice of the request. */
  onResolve: (options: { workspaceId: string; voiceId: string | null }) => void = () => undefined;
  /** Runs before synthesis; may throw or wait. */
  onSpeak: (text: string, signal: AbortSignal) => void | Promise<void> = () => undefined;

  async resolve(options: { workspaceId: string; voiceId: string | null }): Promise<SpeakableVoice> {
    this.onResolve(options);
    return VOICE;
  }

  async *speak({ script, format }: SpeakRequest, signal: AbortSignal): AsyncGenerator<SpokenPart, void> {
    const words = script.clauses.flatMap((clause) => clause.words.map(({ written }) => written));
    const text = words.join(' ');
    this.spoken.push(text);
    await this.onSpeak(text, signal);
    for (const [index] of words.entries()) {
      signal.throwIfAborted();
      const samples = new Int16Array((format.sampleRateHz * this.wordMs) / 1000).fill(1000 + index);
      yield { audio: new Uint8Array(samples.buffer), words: [], durationMs: (index + 1) * this.wordMs };
    }
  }
}
