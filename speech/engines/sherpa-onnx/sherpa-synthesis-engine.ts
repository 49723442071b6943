import { basename } from 'node:path';
import { type EngineVoice, type SynthesisEngine, SynthesizerError } from '../../synthesizer.ts';
import { findSynthesisModels, type InstalledSynthesisModel } from './installed-voices.ts';
import { SherpaSynthesizer } from './sherpa-synthesizer.ts';
import { BRITISH_LEXICON, synthesisConfig } from './synthesis-config.ts';
import type { SynthesisModel } from './synthesis-folder.ts';

export interface SherpaSynthesisOptions {
  /** Its `tts/` is looked into whenever somebody asks. */
  modelsDir: string;
  /** How many models may be loaded side by side, a process each. */
  processes: number;
}

/** The synthesis models of sherpa-onnx that are installed, each instance in a process of its own. */
export function createSherpaSynthesisEngine({ modelsDir, processes }: SherpaSynthesisOptions): SynthesisEngine {
  return {
    name: 'sherpa-onnx',
    controlsPitch: false,
    maxInstances: processes,
    async voices() {
      const { models } = await findSynthesisModels(modelsDir);
      return models.flatMap((installed) => voicesOf(installed).map(({ voice }) => voice));
    },
    async problem() {
      const { models, problems } = await findSynthesisModels(modelsDir);
      if (models.length > 0) return null;
      const broken = problems.map(({ folder, problem }) => `${basename(folder)}: ${problem}`);
      return broken.length > 0 ? broken.join('; ') : NO_MODEL;
    },
    async start({ model, signal }) {
      const { models, problems } = await findSynthesisModels(modelsDir);
      signal.throwIfAborted();
      for (const installed of models) {
        const spoken = voicesOf(installed).filter(({ voice }) => voice.model === model);
        if (spoken.length === 0) continue;
        return await SherpaSynthesizer.start({
          ...{ model, signal, clones: installed.model.clones },
          config: synthesisConfig(installed, spoken[0]!.language),
          speakers: new Map(spoken.map(({ voice, sid }) => [voice.name, sid])),
        });
      }
      const problem = problems.find(({ folder }) => basename(folder) === model)?.problem;
      throw new SynthesizerError('model', `${model}: ${problem ?? 'the model is not installed any more'}`);
    },
  };
}

const NO_MODEL = 'no model yet: tandem models list shows which there are, tandem models fetch brings one';

interface ModelVoice {
  voice: EngineVoice;
  sid: number;
  /** What the model must be loaded for; null when that makes no difference. */
  language: string | null;
}

/** `NAME`, or `NAME#0` and so on; the languages beyond the first of a voice that has several are `NAME@zh`. */
function voicesOf({ model }: InstalledSynthesisModel): ModelVoice[] {
  const isOne = model.speakers.length === 1;
  return model.speakers.flatMap(({ languages, gender }, sid) =>
    languages.map((language, index) => {
      const speaker = isOne ? model.name : `${model.name}#${sid}`;
      const loadedFor = isLoadedFor(model, language) ? language : null;
      const voice: EngineVoice = {
        name: index === 0 ? speaker : `${speaker}@${language}`,
        // Its bytes and what it is loaded for.
        model: loadedFor === null ? model.name : `${model.name}@${loadedFor}`,
        ...{ language, gender, clones: model.clones },
      };
      return { voice, sid, language: loadedFor };
    }),
  );
}

/**
 * A multilingual Kokoro reads American English and Chinese by its usual lexicons, British English by another, and all
 * else by eSpeak NG, as it is told when it is loaded.
 */
function isLoadedFor({ type, lexicons }: SynthesisModel, language: string): boolean {
  if (type !== 'kokoro' || lexicons.length === 0 || /^(?:en|en-us|zh)$/.test(language)) return false;
  return language !== 'en-gb' || lexicons.includes(BRITISH_LEXICON);
}
