import type { Config } from '../config.ts';
import { createEngines, engineSettingsOf, problemOf } from '../speech/engines/available-engines.ts';
import { findInstalledModels } from '../speech/engines/sherpa-onnx/installed-models.ts';
import { findSpeakerModel } from '../speech/engines/sherpa-onnx/speaker-embedder.ts';
import { describeLanguage, TRANSCRIPTION_LANGUAGES } from '../speech/languages.ts';
import type { RecognizerDescription } from '../speech/recognizer.ts';
import type { SpeechRecognition } from '../speech/speech-recognition.ts';
import { type Finding, fail, ok, warn } from './finding.ts';
import { brokenFolders, checkUpstream } from './speech-parts.ts';

/** Checks which recognition engines work here, and how to get others. Loads no model. */
export async function checkRecognition(config: Config): Promise<Finding[]> {
  const { engines, missing } = await createEngines(engineSettingsOf(config));
  const described = await Promise.all(
    engines.map(async (engine) => ({
      name: engine.name,
      models: await engine.describe(),
      problem: await problemOf(engine),
    })),
  );
  const models = described.flatMap((engine) => engine.models);
  const found = described.map(({ name, models: own, problem }) =>
    ok(name, problem ?? own.map(describeModel).join('; ')),
  );
  const absent = missing.map(({ engine, problem }) => ok(engine, problem));
  return [
    checkLanguages(models.flatMap(({ languages }) => languages)),
    ...checkPreferred(config, models),
    ...found,
    ...absent,
    await checkSpeakers(config),
    ...brokenFolders((await findInstalledModels(config.modelsDir)).problems),
    ...(await checkUpstream('STT', { url: config.sttBaseUrl, key: config.sttApiKey })),
  ];
}

/** Checks a running server with the engines of its speech thread. */
export async function checkRunningRecognition(
  config: Config,
  recognition: Pick<SpeechRecognition, 'engines' | 'languages'>,
): Promise<Finding[]> {
  const engines = await recognition.engines();
  return [
    checkLanguages(recognition.languages().map(({ code }) => code)),
    ...engines.map(({ engine, models, problem }) => ok(engine, problem ?? models.join('; '))),
    await checkSpeakers(config),
    ...brokenFolders((await findInstalledModels(config.modelsDir)).problems),
    ...(await checkUpstream('STT', { url: config.sttBaseUrl, key: config.sttApiKey })),
  ];
}

const MOST_LANGUAGES_NAMED = 6;

function checkLanguages(codes: readonly string[]): Finding {
  const check = 'transcription';
  const understood = new Set(codes);
  const catalogued = TRANSCRIPTION_LANGUAGES.filter(({ code }) => understood.has(code));
  if (catalogued.length === 0) {
    return fail(check, 'No speech recognition engine is installed.', 'Run npm ci: PocketSphinx comes with it.');
  }
  return ok(check, `${catalogued.length} of ${TRANSCRIPTION_LANGUAGES.length} languages: ${named([...understood])}`);
}

function checkPreferred({ sttEngine }: Config, models: readonly RecognizerDescription[]): Finding[] {
  if (sttEngine === 'auto' || models.some(({ engine }) => engine.startsWith(sttEngine))) return [];
  const advice = 'Give it a model (tandem models fetch) or a server (STT_BASE_URL), or set STT_ENGINE=auto.';
  return [warn('STT_ENGINE', `${sttEngine} is to be asked first, but cannot do anything yet.`, advice)];
}

function describeModel({ model, languages, streams }: RecognizerDescription): string {
  return `${model}: ${named(languages)}${streams ? ', with interim results' : ''}`;
}

function named(codes: readonly string[]): string {
  if (codes.length > MOST_LANGUAGES_NAMED) return `${codes.length} languages`;
  return codes.map(describeLanguage).join(', ');
}

async function checkSpeakers({ modelsDir }: Config): Promise<Finding> {
  const model = await findSpeakerModel(modelsDir);
  const basic = 'told apart by the basic method: a speaker model in MODELS_DIR/speaker does it better';
  return ok('speakers', model === null ? basic : `told apart by ${model}`);
}
