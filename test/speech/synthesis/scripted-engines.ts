import { parentPort } from 'node:worker_threads';
import type { AvailableSynthesizers, SynthesisSettings } from '../../../speech/engines/available-synthesizers.ts';
import { crash, createFakeEngine } from './fake-engine.ts';

/** Engines for a synthesis thread that certain words kill. */
export const DEADLY_WORD = 'deadly';
export const CRASHING_WORD = 'crashing';

export async function createSynthesisEngines(settings: SynthesisSettings): Promise<AvailableSynthesizers> {
  if (settings.modelsDir === 'damaged') throw new Error('as asked');
  if (parentPort === null) throw new Error('not in a thread');
  let crashes = 0;
  const engine = createFakeEngine({
    maxInstances: settings.processes,
    script: ({ word }) => {
      if (word === DEADLY_WORD) process.exit(1);
      if (word === CRASHING_WORD && crashes++ === 0) crash();
    },
  });
  return { engines: [engine], missing: [{ engine: 'openai', problem: 'not configured' }] };
}
