import type { Config } from '../config.ts';
import { createSynthesisEngines, synthesisSettingsOf } from '../speech/engines/available-synthesizers.ts';
import { findSynthesisModels } from '../speech/engines/sherpa-onnx/installed-voices.ts';
import type { SpeechSynthesis } from '../speech/speech-synthesis.ts';
import type { SynthesisEngine } from '../speech/synthesizer.ts';
import { createVoiceCatalogue } from '../speech/voices/built-in-voices.ts';
import { type Finding, fail, ok, reasonOf, warn } from './finding.ts';
import { brokenFolders, checkUpstream } from './speech-parts.ts';

/** Checks the synthesis engines, and lets the default voice say a word in a child process, as in the server. */
export async function checkSynthesis(config: Config): Promise<Finding[]> {
  const { engines } = await createSynthesisEngines({ ...synthesisSettingsOf(config), processes: 1 });
  return [
    await checkSpeaking(config, engines),
    ...(await checkPreferred(config, engines)),
    ...brokenFolders((await findSynthesisModels(config.modelsDir)).problems),
    ...(await checkUpstream('TTS', { url: config.ttsBaseUrl, key: config.ttsApiKey })),
  ];
}

/** Checks a running server with the engines of its speech thread, without speaking. */
export async function checkRunningSynthesis(
  config: Config,
  synthesis: Pick<SpeechSynthesis, 'engines'>,
): Promise<Finding[]> {
  const engines = await synthesis.engines();
  const speaking = engines.filter(({ voices }) => voices > 0);
  const described = speaking.map(({ engine, voices }) => `${NAMES[engine]}: ${voices} voices`).join(', ');
  const check = 'speech synthesis';
  const advice = 'Run npm ci, which installs eSpeak NG. tandem models check checks models.';
  return [
    speaking.length > 0 ? ok(check, described) : fail(check, 'no engine has a voice', advice),
    ...brokenFolders((await findSynthesisModels(config.modelsDir)).problems),
    ...(await checkUpstream('TTS', { url: config.ttsBaseUrl, key: config.ttsApiKey })),
  ];
}

async function checkSpeaking({ ttsEngine }: Config, engines: readonly SynthesisEngine[]): Promise<Finding> {
  const check = 'speech synthesis';
  try {
    const available = await Promise.all(
      engines.map(async (engine) => {
        return (await engine.voices()).map((voice) => ({ ...voice, engine: engine.name }));
      }),
    );
    const catalogue = createVoiceCatalogue(available.flat(), { preferred: ttsEngine });
    const { recipe } = catalogue.usual;
    const engine = engines.find(({ name }) => name === recipe.engine)!;
    // For a remote server, check only the connection.
    if (engine.name !== 'openai') await sayHello(engine, recipe);
    const voices = [...catalogue.list('fast'), ...catalogue.list('quality')];
    const counts = Map.groupBy(voices, ({ recipe: { engine: name } }) => NAMES[name]);
    const shares = [...counts].map(([name, { length }]) => `${length} of ${name}`).join(', ');
    const count = counts.size > 1 ? `${voices.length} voices (${shares})` : `${voices.length} voices`;
    const languages = new Set(voices.map(({ language }) => language));
    return ok(check, `${NAMES[engine.name]}: ${languages.size} languages, ${count}`);
  } catch (error) {
    const advice = 'Run npm ci, which installs eSpeak NG. tandem models check checks models.';
    return fail(check, `the default voice does not speak: ${reasonOf(error)}`, advice);
  }
}

const NAMES = { 'espeak-ng': 'eSpeak NG', 'sherpa-onnx': 'sherpa-onnx', openai: 'the server' } as const;

async function sayHello(
  engine: SynthesisEngine,
  { model, engineVoice: voice }: { model: string; engineVoice: string },
): Promise<void> {
  const signal = AbortSignal.timeout(30_000);
  const synthesizer = await engine.start({ model, signal });
  const words = [{ written: 'Hello.', spoken: 'Hello.', phonemes: null }];
  const clause = { words, voice, speed: 1, pitchSemitones: 0, pitchRange: 1, reference: null };
  try {
    for await (const _ of synthesizer.speak(clause, signal)) break;
  } finally {
    await synthesizer.close();
  }
}

async function checkPreferred({ ttsEngine }: Config, engines: readonly SynthesisEngine[]): Promise<Finding[]> {
  const preferred = engines.find(({ name }) => name === ttsEngine);
  if (ttsEngine === 'auto' || (preferred !== undefined && (await preferred.problem()) === null)) return [];
  const advice = 'Give it a model (tandem models fetch) or a server (TTS_BASE_URL), or set TTS_ENGINE=auto.';
  return [warn('TTS_ENGINE', `${ttsEngine} is to speak first, but has no voice yet.`, advice)];
}
