import {
  type AvailableEngines,
  createEngines as createAll,
  type EngineSettings,
} from '../speech/engines/available-engines.ts';

/** Only the engine that is measured, so that no other takes over what it fails at. */
export async function createEngines(settings: EngineSettings): Promise<AvailableEngines> {
  const available = await createAll(settings);
  return { ...available, engines: available.engines.filter(({ name }) => name === process.env.BENCH_STT_ENGINE) };
}
