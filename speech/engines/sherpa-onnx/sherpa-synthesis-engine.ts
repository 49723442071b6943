import { basename } from 'node:path';
import { type EngineVoice, type SynthesisEngine, SynthesizerError } from '../../synthesizer.ts';
import { findSynthesisModels, type InstalledSynthesisModel } from './installed-voices.ts';
import { SherpaSynthesizer } from './sherpa-synthesizer.ts';
import { BRITISH_LEXICON, synthesisConfig } from './synthesis-config.ts';
import type { SynthesisModel } from './synthesis-folder.ts';

export interface SherpaSynthesisOptions {
  /** Its `tts/` is scanned on every query. */
  modelsDir: string;
  /** Limit of loaded models, one process each. */
  processes: number;
}

/** An engine for the installed sherpa-onnx synthesis models, with one process per instance. */
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
  /** Language that the model must be loaded for; null if it makes no difference. */
  language: string | null;
}

/** `NAME`, or `NAME#0` and so on; further languages of a voice are `NAME@zh`. */
function voicesOf({ model }: InstalledSynthesisModel): ModelVoice[] {
  const isOne = model.speakers.length === 1;
  return model.speakers.flatMap(({ languages, gender }, sid) =>
    languages.map((language, index) => {
      const speaker = isOne ? model.name : `${model.name}#${sid}`;
      const loadedFor = isLoadedFor(model, language) ? language : null;
      const voice: EngineVoice = {
        name: index === 0 ? speaker : `${speaker}@${language}`,
        // Identifies the files and the language they are loaded for.
        model: loadedFor === null ? model.name : `${model.name}@${loadedFor}`,
        ...{ language, gender, clones: model.clones },
      };
      return { voice, sid, language: loadedFor };
    }),
  );
}

/**
 * Whether a multilingual Kokoro must be loaded for the language. It reads American English and Chinese with its default
 * lexicons, British English with another, and the rest with eSpeak NG, as set at loading.
 */
function isLoadedFor({ type, lexicons }: SynthesisModel, language: string): boolean {
  if (type !== 'kokoro' || lexicons.length === 0 || /^(?:en|en-us|zh)$/.test(language)) return false;
  return language !== 'en-gb' || lexicons.includes(BRITISH_LEXICON);
}
