import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { answerCalls, WithTransfer } from '../engine-thread/answer-calls.ts';
import type { FromThread } from '../engine-thread/protocol.ts';
import type { AvailableSynthesizers, SynthesisSettings } from '../engines/available-synthesizers.ts';
import { SynthesizerError } from '../synthesizer.ts';
import type { SynthesisCalls, SynthesisDescribed, ThreadData, ThreadNotice } from './protocol.ts';
import { SynthesisDesk } from './synthesis-desk.ts';

/** Entry of the synthesis thread: makes the engines, and answers the main thread. */

async function serve(port: MessagePort, { settings, enginesModule }: ThreadData): Promise<void> {
  const post = (message: FromThread<SynthesisDescribed, ThreadNotice>): void => port.postMessage(message);
  const { createSynthesisEngines } = (await import(enginesModule)) as EnginesModule;
  const desk = new SynthesisDesk({
    available: await createSynthesisEngines(settings),
    processes: settings.processes,
    cache: {
      ...settings.cache,
      onTrouble: (error) => post({ type: 'notice', notice: { type: 'cache.troubled', detail: detailOf(error) } }),
    },
    onBroken: (instance) => post({ type: 'notice', notice: { type: 'synthesizer.broken', ...instance } }),
  });
  answerCalls<SynthesisCalls>(port, {
    calls: {
      'stream.open': ({ streamKey, request }) => {
        desk.open(streamKey, request);
        return null;
      },
      'stream.next': async ({ streamKey }) => {
        const part = await desk.next(streamKey);
        return part === null ? null : new WithTransfer(part, [part.audio.buffer as ArrayBuffer]);
      },
      'stream.close': ({ streamKey }) => {
        desk.close(streamKey);
        return null;
      },
      'engines.describe': () => desk.describe(),
    },
    drain: () => desk.drain(),
    codeOf: (error) => (error instanceof SynthesizerError ? error.code : null),
  });
  post({ type: 'ready', ready: await desk.describe() });
}

interface EnginesModule {
  createSynthesisEngines: (settings: SynthesisSettings) => Promise<AvailableSynthesizers>;
}

function detailOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

if (parentPort !== null) await serve(parentPort, workerData as ThreadData);
