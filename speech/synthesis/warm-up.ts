import type { SpeechSynthesis } from '../speech-synthesis.ts';
import { readScript } from '../text/read-script.ts';
import { USUAL_STYLE, type VoiceRecipe } from '../voices/voice-recipe.ts';

/**
 * Speaks to nobody, so that the first who listens need not wait for a process to start and code to be compiled. What
 * goes wrong will go wrong for him too, and is told then.
 */
export async function warmUpSpeech(
  synthesis: Pick<SpeechSynthesis, 'speak'>,
  { recipe, signal }: { recipe: VoiceRecipe; signal: AbortSignal },
): Promise<void> {
  const script = readScript('2 of 3 are ready at 10:30', { language: recipe.language });
  const format = { encoding: 'LINEAR16', sampleRateHz: 24_000 } as const;
  try {
    for await (const _ of synthesis.speak({ script, recipe, style: USUAL_STYLE, format }, signal));
  } catch {}
}
