import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { schemaCheck } from '../../../runtime/schema-check.ts';
import { ProcessError } from '../../../runtime/supervised-process.ts';
import type { SpeakerEmbedder } from '../../diarization/diarizer.ts';
import { EngineProcess } from '../../engine-process/engine-process.ts';

/**
 * Finds the first speaker model by name in `speaker/` of the models folder: an `.onnx` file, or a folder with one. Null
 * if there is none.
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

/** A few seconds characterise a voice; more would only take longer. */
const MOST_SAMPLES = 16_000 * 10;

const Embedding = schemaCheck({
  anyOf: [{ type: 'null' }, { type: 'array', items: { type: 'number' }, minItems: 1, maxItems: 4096 }],
});

/** A sherpa-onnx speaker model in a process of its own, which starts on first use. */
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
        // The next call starts another process.
        const broken = starting;
        starting = null;
        void broken?.then((process) => process.close()).catch(() => {});
        throw error;
      }
    },
  };
}
