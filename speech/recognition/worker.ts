import { TandemError } from '../../machines/errors.ts';
import { serveThread } from '../../runtime/serve-thread.ts';
import type { AvailableEngines, EngineSettings } from '../engines/available-engines.ts';
import type { RecognitionThread } from './protocol.ts';
import { RecognitionDesk } from './recognition-desk.ts';

/** Entry of the speech thread: creates the engines and answers the main thread. */

interface EnginesModule {
  createEngines: (settings: EngineSettings) => Promise<AvailableEngines>;
}

await serveThread<RecognitionThread>(async ({ data: { settings, enginesModule }, report }) => {
  const { createEngines } = (await import(enginesModule)) as EnginesModule;
  const desk = new RecognitionDesk({
    available: await createEngines(settings),
    preferred: settings.preferred,
    processes: settings.processes,
    onEvent: (streamKey, event) => report({ type: 'event', streamKey, event }),
    onLoad: (load) => report({ type: 'load', ...load }),
    onBroken: (instance) => report({ type: 'recognizer.broken', ...instance }),
  });
  return {
    ready: await desk.describe(),
    calls: {
      'stream.open': (request) => desk.open(request),
      'stream.configure': ({ streamKey, change }) => desk.configure(streamKey, change),
      'stream.close': ({ streamKey }) => desk.close(streamKey),
      'engines.describe': () => desk.describe(),
    },
    drain: () => desk.drain(),
    // Other errors have codes outside the catalogue, some of them spelled alike.
    failureOf: (error) => ({
      code: error instanceof TandemError ? error.code : null,
      message: error instanceof Error ? error.message : String(error),
    }),
  };
});
