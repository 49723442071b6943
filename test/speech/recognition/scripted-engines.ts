import type { AvailableEngines, EngineSettings } from '../../../speech/engines/available-engines.ts';
import { crash, createFakeEngine, type FakeStep } from '../fake-engine.ts';

/** Engines for a speech thread. Certain words kill it, the second one only once. */
export const DEADLY_WORD = 666;
export const CRASHING_WORD = 667;

export async function createEngines({ modelsDir, processes }: EngineSettings): Promise<AvailableEngines> {
  if (modelsDir === 'damaged') throw new Error('as asked');
  let crashes = 0;
  const script = ({ type, words }: FakeStep): void => {
    if (type === 'write' && words.includes(DEADLY_WORD)) process.exit(1);
    if (type === 'write' && words.includes(CRASHING_WORD) && crashes++ === 0) crash();
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
