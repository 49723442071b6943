import { TandemError } from '../../machines/errors.ts';
import { voicesIn } from '../../speech/text/read-script.ts';
import type { VoiceWish } from '../../speech/text/script.ts';
import type { VoiceRecipe } from '../../speech/voices/voice-recipe.ts';
import type { SpeakableVoice, VoiceDesk } from '../voices/voice-desk.ts';
import { refuseInvalidSsml } from './speech-refusals.ts';

/** Voices that a text's markup switches to, by the index in its clauses. */
export interface SwitchedVoices {
  recipes: readonly VoiceRecipe[];
  /** BCP 47 language of each voice, for reading its stretches. */
  languages: readonly string[];
}

/**
 * Resolves the voices of `voice` and `lang` elements in SSML.
 * @param options.voice the voice of the request
 * @throws TandemError `INVALID_SSML`, `VOICE_NOT_FOUND`, `VOICE_NOT_READY`; the messages name the position
 */
export async function switchedVoices(
  text: string,
  { workspaceId, voice, voices }: { workspaceId: string; voice: SpeakableVoice; voices: Pick<VoiceDesk, 'resolve'> },
): Promise<SwitchedVoices> {
  const wishes = refuseInvalidSsml(() => voicesIn(text));
  const named = new Map<string, Promise<SpeakableVoice>>();
  const found: SpeakableVoice[] = [];
  const languages: string[] = [];
  for (const wish of wishes) {
    const around = wish.outer === null ? voice : found[wish.outer]!;
    const wished = await resolve(wish, around).catch((error: unknown) => throwAt(wish, error));
    found.push(wished);
    languages.push(wish.language ?? wished.recipe.language);
  }
  return { recipes: found.map(({ recipe }) => recipe), languages };

  async function resolve({ name, language, gender }: VoiceWish, around: SpeakableVoice): Promise<SpeakableVoice> {
    if (name === null) return await voices.resolve({ workspaceId, voiceId: null, like: { language, gender, around } });
    const resolving = named.get(name) ?? voices.resolve({ workspaceId, voiceId: name, text });
    named.set(name, resolving);
    return await resolving;
  }
}

function throwAt({ position }: VoiceWish, error: unknown): never {
  if (!(error instanceof TandemError)) throw error;
  const { code, message, retryAfterS } = error;
  throw new TandemError(code, `SSML at ${position}: ${message}`, {
    cause: error,
    ...(retryAfterS !== null && { retryAfterS }),
  });
}
