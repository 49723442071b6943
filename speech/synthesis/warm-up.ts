import type { SpeechSynthesis } from '../speech-synthesis.ts';
import { readScript } from '../text/read-script.ts';
import { USUAL_STYLE, type VoiceRecipe } from '../voices/voice-recipe.ts';

/**
 * Synthesises a text and discards it, so that the first request does not wait for a process start and compilation.
 * Ignores failures, which the first request will report.
 */
export async function warmUpSpeech(
  synthesis: Pick<SpeechSynthesis, 'speak'>,
  { recipe, signal }: { recipe: VoiceRecipe; signal: AbortSignal },
): Promise<void> {
  // The cache contains the texts of earlier starts.
  const script = readScript(`2 of ${Date.now()} are ready at 10:30`, { language: recipe.language });
  const format = { encoding: 'LINEAR16', sampleRateHz: 24_000 } as const;
  try {
    for await (const _ of synthesis.speak({ script, recipe, style: USUAL_STYLE, format }, signal));
  } catch {}
}
