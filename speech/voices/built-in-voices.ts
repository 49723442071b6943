import type { AvailableVoice } from '../speech-synthesis.ts';
import type { SynthesisEngineName } from '../synthesizer.ts';
import type { CatalogueVoice, VoiceCatalogue } from './catalogue.ts';
import { otherEnginesVoices } from './engine-voices.ts';
import { characterVoices } from './espeak-character-voices.ts';
import { ESPEAK_CHARACTERS } from './espeak-characters.ts';
import { PLAIN_ENGLISH, plainVoices } from './espeak-plain-voices.ts';
import { languageCode, languageName } from './language-names.ts';
import { openaiVoice } from './openai-voices.ts';
import { languageOfScript } from './script-languages.ts';
import { voiceLike } from './voice-like.ts';

export interface VoiceCatalogueOptions {
  /** Engine whose voices come first; `auto`: configured models and servers, before eSpeak NG. */
  preferred: 'auto' | SynthesisEngineName;
}

/**
 * Builds the catalogue from the engines' voices. Without any, it still has a default voice, so that requests fail with
 * its name.
 */
export function createVoiceCatalogue(
  available: readonly AvailableVoice[],
  { preferred }: VoiceCatalogueOptions,
): VoiceCatalogue {
  const espeak = available.filter(({ engine }) => engine === 'espeak-ng');
  const others = otherEnginesVoices(available.filter(({ engine }) => engine !== 'espeak-ng'));
  const fast = plainVoices(espeak);
  const quality = byLanguage(
    preferred === 'espeak-ng' ? [...characterVoices(espeak), ...others] : [...others, ...characterVoices(espeak)],
  );
  const known = new Map<string, CatalogueVoice>();
  // The first voice keeps a name: a plain voice keeps its own, whatever else is installed.
  for (const voice of [...fast, ...quality]) {
    for (const name of [voice.id, ...voice.shortNames]) {
      if (!known.has(name.toLowerCase())) known.set(name.toLowerCase(), voice);
    }
  }
  const usual = usualVoice({ fast, others, preferred });
  const byPreference = preferred === 'espeak-ng' ? fast : [...others, ...fast];
  const usualFor = (text: string) => {
    const code = languageOfScript(text);
    return (code === null ? undefined : byPreference.find(({ language }) => language === code)) ?? usual;
  };
  return {
    list: (tier) => (tier === 'fast' ? fast : quality),
    find(idOrName, text = '') {
      const voice = known.get(idOrName.toLowerCase());
      return voice ?? openaiVoice(idOrName, { voices: quality, usual: usualFor(text) });
    },
    usual,
    usualFor,
    like: (likeness) => voiceLike(likeness, { fast: byPreference, quality }),
    languages: () => languagesOf([...espeakCare(espeak), ...others.map(({ language }) => language)]),
  };
}

/** Tuned languages that the installed eSpeak NG supports. */
function espeakCare(espeak: readonly AvailableVoice[]): string[] {
  const installed = new Set(espeak.map(({ language }) => languageCode(language)));
  return TUNED_LANGUAGES.filter((language) => installed.has(language));
}

const TUNED_LANGUAGES = [...new Set(ESPEAK_CHARACTERS.map(({ base }) => languageCode(base)))];

function languagesOf(codes: readonly string[]): { language: string; name: string }[] {
  return [...new Set(codes)].map((language) => ({ language, name: languageName(language) }));
}

/** Groups voices by language, in the order of tuned languages; stable. */
function byLanguage(voices: readonly CatalogueVoice[]): readonly CatalogueVoice[] {
  const rank = (code: string) =>
    TUNED_LANGUAGES.includes(code) ? TUNED_LANGUAGES.indexOf(code) : TUNED_LANGUAGES.length;
  return voices.toSorted((a, b) => rank(a.language) - rank(b.language));
}

function usualVoice({
  fast,
  others,
  preferred,
}: {
  fast: readonly CatalogueVoice[];
  others: readonly CatalogueVoice[];
  preferred: VoiceCatalogueOptions['preferred'];
}): CatalogueVoice {
  const plainEnglish = fast.find(({ shortNames }) => shortNames.includes('en-us')) ?? fast[0];
  const wanted = preferred === 'auto' ? others : others.filter(({ recipe }) => recipe.engine === preferred);
  const english = wanted.find(({ recipe }) => recipe.language === 'en-us') ?? wanted.find(isEnglish);
  if (english !== undefined) return english;
  if (preferred !== 'auto' && wanted[0] !== undefined) return wanted[0];
  return plainEnglish ?? others[0] ?? PLAIN_ENGLISH;
}

function isEnglish({ language }: CatalogueVoice): boolean {
  return language === 'en';
}
