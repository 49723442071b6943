import type { JsonValue } from '../../../runtime/frames.ts';
import { spawnRecognizer } from '../../engine-process/spawned-recognizer.ts';
import {
  type RecognitionEngine,
  type Recognizer,
  type RecognizerDescription,
  RecognizerError,
} from '../../recognizer.ts';
import { findInstalledModels, type InstalledModel, type InstalledModels } from './installed-models.ts';
import type { LanguageSwitchingOptions, SherpaProcessArgument } from './language-switching-recognizer.ts';
import { lastWords } from './last-words.ts';
import type { LoadRecognizerOptions } from './load-recognizer.ts';
import { hasConfidence, isStreaming } from './model-folder.ts';

export interface SherpaEngineOptions {
  /** Its `stt/`, `punctuation/` and `language-id/` are looked into whenever somebody asks. */
  modelsDir: string;
  /** How many models may be loaded side by side, a process each. */
  processes: number;
  /** Aborting ends all processes. */
  signal?: AbortSignal;
}

/** The models of sherpa-onnx that are installed, each instance in a process of its own. */
export function createSherpaEngine({ modelsDir, processes, signal }: SherpaEngineOptions): RecognitionEngine {
  return {
    name: 'sherpa-onnx',
    maxInstances: processes,
    async describe() {
      const installed = await findInstalledModels(modelsDir);
      const descriptions = installed.recognition.map(describeModel);
      const switching = switchingOptions(installed);
      return switching === null ? descriptions : [...descriptions, describeSwitching(switching)];
    },
    async load(description) {
      const installed = await findInstalledModels(modelsDir);
      const argument = await argumentFor(description, installed);
      return await start({ description, argument, signal });
    },
  };
}

/** The name of the model that finds out which language is spoken, and lets a model of that language listen. */
const BY_LANGUAGE = 'by-language';

/** People pause, and a model is faster than they speak: one process does several while it loads the model once. */
const STREAMS_AT_ONCE = 4;

function describeModel({ model }: InstalledModel): RecognizerDescription {
  return {
    engine: 'sherpa-onnx',
    model: model.name,
    languages: model.languages,
    detectsLanguage: model.detectsLanguage,
    streams: isStreaming(model),
    boostsKeywords: model.hotwords !== null,
    hasConfidence: hasConfidence(model),
    ...(isStreaming(model) && { utterancesAtOnce: STREAMS_AT_ONCE }),
  };
}

function describeSwitching({ recognizers }: LanguageSwitchingOptions): RecognizerDescription {
  const models = recognizers.map(({ load }) => load.model);
  return {
    engine: 'sherpa-onnx',
    model: BY_LANGUAGE,
    languages: recognizers.map(({ language }) => language),
    detectsLanguage: true,
    streams: false,
    boostsKeywords: models.every(({ hotwords }) => hotwords !== null),
    hasConfidence: models.every(hasConfidence),
  };
}

/** Null where there is nothing to switch between, or nothing to tell languages apart with. */
function switchingOptions(installed: InstalledModels): LanguageSwitchingOptions | null {
  const { recognition, languageIdentification: identification } = installed;
  if (identification === null) return null;
  // Whole utterances are recognised anyway, so by models that read them as such.
  const preferred = [...recognition].sort((a, b) => Number(isStreaming(a.model)) - Number(isStreaming(b.model)));
  const languages = [...new Set(preferred.flatMap(({ model }) => model.languages))];
  if (languages.length < 2) return null;
  const recognizers = languages.map((language) => {
    const model = preferred.find((candidate) => candidate.model.languages.includes(language))!;
    return { language, load: loadOptions(model, installed) };
  });
  return { identification, recognizers };
}

function loadOptions(installed: InstalledModel, { punctuation }: InstalledModels): LoadRecognizerOptions {
  const fits = punctuation.find(({ languages }) => installed.model.languages.every((code) => languages.includes(code)));
  return { ...installed, punctuation: fits ?? null };
}

/** @throws RecognizerError `model` when it is gone or damaged since it was described */
async function argumentFor(
  description: RecognizerDescription,
  installed: InstalledModels,
): Promise<SherpaProcessArgument> {
  if (description.model === BY_LANGUAGE) {
    const switching = switchingOptions(installed);
    if (switching !== null) return switching;
  }
  const found = installed.recognition.find(({ model }) => model.name === description.model);
  if (found !== undefined) return loadOptions(found, installed);
  const problem = installed.problems.find(({ folder }) => folder.endsWith(`/${description.model}`))?.problem;
  throw new RecognizerError('model', `${description.model}: ${problem ?? 'the model is not installed any more'}`);
}

/** A gigabyte from a slow disk. */
const LOAD_WITHIN_MS = 180_000;

/** @throws RecognizerError */
async function start(options: {
  description: RecognizerDescription;
  argument: SherpaProcessArgument;
  signal: AbortSignal | undefined;
}): Promise<Recognizer> {
  const { description, signal } = options;
  try {
    return await spawnRecognizer({
      entry: new URL('./child.ts', import.meta.url),
      description,
      // It holds nothing but texts, numbers and lists of them.
      argument: options.argument as unknown as JsonValue,
      loadWithinMs: LOAD_WITHIN_MS,
      ...(signal !== undefined && { signal }),
    });
  } catch (error) {
    if (!(error instanceof RecognizerError) || error.code !== 'crashed' || signal?.aborted) throw error;
    // The library ends its process over a model that it cannot read: another try would do the same.
    const said = lastWords(error.cause);
    const message = `${description.model}: sherpa-onnx cannot load it${said === null ? '' : ` (${said})`}`;
    throw new RecognizerError('model', message, { cause: error });
  }
}
