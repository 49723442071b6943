/** Language and gender of a Kokoro voice, from its name: `bf_emma` is a British woman. */
export function kokoroSpeaker(name: string): { language: string; gender: 'female' | 'male' } | null {
  const match = /^([abefhijpz])([fm])(?:_|$)/.exec(name);
  if (match === null) return null;
  return { language: LANGUAGES[match[1] as keyof typeof LANGUAGES], gender: match[2] === 'f' ? 'female' : 'male' };
}

const LANGUAGES = {
  a: 'en-us',
  b: 'en-gb',
  e: 'es',
  f: 'fr-fr',
  h: 'hi',
  i: 'it',
  j: 'ja',
  p: 'pt-br',
  z: 'zh',
} as const;
