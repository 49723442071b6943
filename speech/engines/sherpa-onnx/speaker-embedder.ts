import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { schemaCheck } from '../../../runtime/schema-check.ts';
import { ProcessError } from '../../../runtime/supervised-process.ts';
import type { SpeakerEmbedder } from '../../diarization/diarizer.ts';
import { EngineProcess } from '../../engine-process/engine-process.ts';

/**
 * The first speaker model in `speaker/` of the folder of models, by name: an `.onnx` file, or a folder with one. Null
 * when there is none.
 */
export async function findSpeakerModel(modelsDir: string): Promise<string | null> {
  const folder = join(modelsDir, 'speaker');
  const names = await readdir(folder, { recursive: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw error;
  });
  const [first] = names.filter((name) => name.endsWith('.onnx')).sort();
  return first === undefined ? null : join(folder, first);
}

/** A voice shows in a few seconds; more would only take longer. */
const MOST_SAMPLES = 16_000 * 10;

const Embedding = schemaCheck({
  anyOf: [{ type: 'null' }, { type: 'array', items: { type: 'number' }, minItems: 1, maxItems: 4096 }],
});

/** A speaker model of sherpa-onnx in a process of its own, which starts when it is first asked. */
export function createSpeakerEmbedder(model: string): SpeakerEmbedder {
  let starting: Promise<EngineProcess> | null = null;
  const start = (): Promise<EngineProcess> =>
    EngineProcess.start({ entry: new URL('./speaker-child.ts', import.meta.url), argument: { model } });
  return {
    async embed(samples) {
      starting ??= start();
      try {
        const spoken = samples.subarray(0, MOST_SAMPLES);
        const body = new Uint8Array(spoken.buffer, spoken.byteOffset, spoken.byteLength);
        const answer = await (await starting).call('embed', null, body);
        if (!Embedding.matches(answer)) throw new ProcessError('the speaker model returned an invalid embedding');
        return answer === null ? null : Float32Array.from(answer);
      } catch (error) {
        // The next one who asks gets another process.
        const broken = starting;
        starting = null;
        void broken?.then((process) => process.close()).catch(() => {});
        throw error;
      }
    },
  };
}
