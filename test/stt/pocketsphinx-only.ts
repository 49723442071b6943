import type { AvailableEngines, EngineSettings } from '../../speech/engines/available-engines.ts';
import { createPocketsphinxEngine } from '../../speech/engines/pocketsphinx/pocketsphinx-engine.ts';

/** Engines of a test's speech thread: only the bundled one, even if others are installed. */
export async function createEngines(settings: EngineSettings): Promise<AvailableEngines> {
  return { engines: [createPocketsphinxEngine(settings)], missing: [], embedder: null };
}
