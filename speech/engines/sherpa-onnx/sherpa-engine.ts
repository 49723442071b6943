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
  /** Its `stt/`, `punctuation/` and `language-id/` are scanned on every query. */
  modelsDir: string;
  /** Limit of loaded models, one process each. */
  processes: number;
  /** Aborting ends all processes. */
  signal?: AbortSignal;
}

/** An engine for the installed sherpa-onnx models, with one process per instance. */
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

/** Name of the pseudo-model that detects the language and uses a model of that language. */
const BY_LANGUAGE = 'by-language';

/** Speech has pauses and models are faster than it, so one process serves several streams with one loaded model. */
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

/** Null if there are no alternatives or no model for identification. */
function switchingOptions(installed: InstalledModels): LanguageSwitchingOptions | null {
  const { recognition, languageIdentification: identification } = installed;
  if (identification === null) return null;
  // Prefers whole-utterance models, because switching needs the whole utterance anyway.
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

/** @throws RecognizerError `model` if it was removed or damaged since it was described */
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
      // Plain JSON data: only strings, numbers and lists.
      argument: options.argument as unknown as JsonValue,
      loadWithinMs: LOAD_WITHIN_MS,
      ...(signal !== undefined && { signal }),
    });
  } catch (error) {
    if (!(error instanceof RecognizerError) || error.code !== 'crashed' || signal?.aborted) throw error;
    // The library exits its process when it cannot read a model. A retry would fail the same way.
    const said = lastWords(error.cause);
    const message = `${description.model}: sherpa-onnx cannot load it${said === null ? '' : ` (${said})`}`;
    throw new RecognizerError('model', message, { cause: error });
  }
}
