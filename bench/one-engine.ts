import {
  type AvailableEngines,
  createEngines as createAll,
  type EngineSettings,
} from '../speech/engines/available-engines.ts';

/** Opens only the measured engine, so that no other takes over its failures. */
export async function createEngines(settings: EngineSettings): Promise<AvailableEngines> {
  const available = await createAll(settings);
  return { ...available, engines: available.engines.filter(({ name }) => name === process.env.BENCH_STT_ENGINE) };
}
