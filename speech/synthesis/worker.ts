import { serveThread, WithTransfer } from '../../runtime/serve-thread.ts';
import type { AvailableSynthesizers, SynthesisSettings } from '../engines/available-synthesizers.ts';
import type { SynthesisThread } from './protocol.ts';
import { SynthesisDesk } from './synthesis-desk.ts';

/** Entry of the synthesis thread: creates the engines and answers the main thread. */

interface EnginesModule {
  createSynthesisEngines: (settings: SynthesisSettings) => Promise<AvailableSynthesizers>;
}

await serveThread<SynthesisThread>(async ({ data: { settings, enginesModule }, report }) => {
  const { createSynthesisEngines } = (await import(enginesModule)) as EnginesModule;
  const desk = new SynthesisDesk({
    available: await createSynthesisEngines(settings),
    processes: settings.processes,
    cache: {
      ...settings.cache,
      onTrouble: (error) => report({ type: 'cache.troubled', detail: detailOf(error) }),
    },
    onBroken: (instance) => report({ type: 'synthesizer.broken', ...instance }),
  });
  return {
    ready: await desk.describe(),
    calls: {
      'stream.open': ({ streamKey, request }) => desk.open(streamKey, request),
      'stream.next': async ({ streamKey }) => {
        const part = await desk.next(streamKey);
        return part === null ? null : new WithTransfer(part, [part.audio.buffer as ArrayBuffer]);
      },
      'stream.close': ({ streamKey }) => desk.close(streamKey),
      'engines.describe': () => desk.describe(),
    },
    drain: () => desk.drain(),
  };
});

function detailOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
