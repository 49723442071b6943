import type { AvailableEngines, EngineSettings } from '../../speech/engines/available-engines.ts';
import { createPocketsphinxEngine } from '../../speech/engines/pocketsphinx/pocketsphinx-engine.ts';

/** For the speech thread of a test: the recogniser that comes along, whatever else is installed. */
export async function createEngines(settings: EngineSettings): Promise<AvailableEngines> {
  return { engines: [createPocketsphinxEngine(settings)], missing: [], embedder: null };
}
