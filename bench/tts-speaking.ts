import type { Config } from '../config.ts';
import { synthesisSettingsOf } from '../speech/engines/available-synthesizers.ts';
import { createSpeechSynthesis } from '../speech/speech-synthesis.thread.ts';
import type { AvailableVoice, SpeechFormat, SpeechSynthesis } from '../speech/speech-synthesis.ts';
import { readScript } from '../speech/text/read-script.ts';
import { PLAIN_CHARACTER, USUAL_STYLE, type VoiceRecipe } from '../speech/voices/voice-recipe.ts';

/** Opens the configured synthesis engines without a cache. */

export async function openSynthesis(config: Config): Promise<SpeechSynthesis> {
  return await createSpeechSynthesis({ settings: synthesisSettingsOf({ ...config, ttsCacheMb: 0 }) });
}

/** A recipe that leaves the engine's voice unchanged. */
export function usualRecipe({ engine, model, name, language }: AvailableVoice): VoiceRecipe {
  return { engine, model, engineVoice: name, language, own: null, character: PLAIN_CHARACTER, reference: null };
}

export interface SpokenForBench {
  audio: Buffer;
  /** From the request to the first audio. */
  firstMs: number;
  durationMs: number;
}

export async function spoken(
  synthesis: SpeechSynthesis,
  { text, recipe, format }: { text: string; recipe: VoiceRecipe; format: SpeechFormat },
): Promise<SpokenForBench> {
  const beganAt = performance.now();
  const script = readScript(text, { language: recipe.language });
  const parts: Uint8Array[] = [];
  let firstMs = 0;
  let durationMs = 0;
  const request = { script, recipe, style: USUAL_STYLE, format };
  for await (const part of synthesis.speak(request, new AbortController().signal)) {
    if (firstMs === 0 && part.audio.byteLength > 0) firstMs = performance.now() - beganAt;
    parts.push(part.audio);
    durationMs = part.durationMs;
  }
  return { audio: Buffer.concat(parts), firstMs, durationMs };
}
