import type { AvailableEngines, EngineSettings } from '../../../speech/engines/available-engines.ts';
import { crash, createFakeEngine } from '../fake-engine.ts';

/** Engines for a speech thread, in which certain words do harm. */
export const DEADLY_WORD = 666;
export const CRASHING_WORD = 667;

export async function createEngines({ modelsDir, processes }: EngineSettings): Promise<AvailableEngines> {
  if (modelsDir === 'damaged') throw new Error('as asked');
  const script = ({ type, instance, words }: { type: string; instance: number; words: readonly number[] }): void => {
    if (type === 'write' && words.includes(DEADLY_WORD)) process.exit(1);
    if (type === 'write' && words.includes(CRASHING_WORD) && instance === 0) crash();
  };
  return {
    engines: [
      createFakeEngine({ maxInstances: processes, script }),
      createFakeEngine({ engine: 'sherpa-onnx', model: 'hindi', languages: ['hi'], maxInstances: processes }),
    ],
    missing: [{ engine: 'openai', problem: 'not configured' }],
    embedder: null,
  };
}
