import { afterEach, expect, it, vi } from 'vitest';
import type { SpeechSynthesis } from '../../../speech/speech-synthesis.ts';
import { warmUpSpeech } from '../../../speech/synthesis/warm-up.ts';
import type { VoiceRecipe } from '../../../speech/voices/voice-recipe.ts';

afterEach(() => {
  vi.useRealTimers();
});

it('speaks another text at each start, because the cache contains the last one', async () => {
  vi.useFakeTimers({ toFake: ['Date'] });
  const scripts: unknown[] = [];
  const speak: SpeechSynthesis['speak'] = async function* ({ script }) {
    scripts.push(script);
    yield* [];
  };
  const recipe = { engine: 'espeak-ng', language: 'en' } as VoiceRecipe;
  for (const at of [1_795_000_000_000, 1_795_000_005_000]) {
    vi.setSystemTime(at);
    await warmUpSpeech({ speak }, { recipe, signal: new AbortController().signal });
  }
  expect(scripts).toHaveLength(2);
  expect(scripts[0]).not.toEqual(scripts[1]);
});
