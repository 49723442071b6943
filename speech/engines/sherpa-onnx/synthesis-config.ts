import { join } from 'node:path';
import { ESPEAK_DATA, type InstalledSynthesisModel } from './installed-voices.ts';

/** Builds sherpa-onnx's configuration for a model. `language` applies to a multilingual Kokoro. */
export function synthesisConfig({ folder, model }: InstalledSynthesisModel, language: string | null): object {
  const inFolder = (names: readonly string[]) => names.map((name) => join(folder, name)).join(',');
  const { model: main, ...files } = Object.fromEntries(
    Object.entries(model.files).map(([role, file]) => [role, join(folder, file)]),
  );
  const dataDir = model.hasEspeakData ? { dataDir: join(folder, ESPEAK_DATA) } : {};
  const lexicon = model.lexicons.length === 0 ? {} : { lexicon: inFolder(lexiconsFor(model.lexicons, language)) };
  const common = { ...files, ...dataDir };
  return {
    model: {
      [model.type]: {
        ...common,
        ...(main !== undefined && (model.type === 'matcha' ? { acousticModel: main } : { model: main })),
        ...(model.type !== 'pocket' && model.type !== 'kitten' && lexicon),
        ...(language !== null && language !== BRITISH && { lang: language }),
      },
      // One thread each, because there are as many processes as cores.
      numThreads: 1,
      provider: 'cpu',
      debug: 0,
    },
    ...(model.ruleFsts.length > 0 && { ruleFsts: inFolder(model.ruleFsts) }),
    ...(model.ruleFars.length > 0 && { ruleFars: inFolder(model.ruleFars) }),
    // Streams a clause of several sentences after the first.
    maxNumSentences: 1,
    silenceScale: 1,
  };
}

export const BRITISH_LEXICON = 'lexicon-gb-en.txt';
const BRITISH = 'en-gb';

/** The lexicons of American and British English contain the same words, and the first match wins. */
function lexiconsFor(lexicons: readonly string[], language: string | null): readonly string[] {
  const unwanted = language === BRITISH ? 'lexicon-us-en.txt' : BRITISH_LEXICON;
  const wanted = lexicons.filter((name) => name !== unwanted);
  return wanted.length === 0 ? lexicons : wanted;
}
