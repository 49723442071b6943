import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { TandemError } from '../../machines/errors.ts';
import { answerCalls } from '../engine-thread/answer-calls.ts';
import type { FromThread } from '../engine-thread/protocol.ts';
import type { AvailableEngines, EngineSettings } from '../engines/available-engines.ts';
import type { EnginesDescribed, RecognitionCalls, ThreadData, ThreadNotice } from './protocol.ts';
import { RecognitionDesk } from './recognition-desk.ts';

/** Entry of the speech thread: makes the engines, and answers the main thread. */

async function serve(port: MessagePort, { settings, enginesModule }: ThreadData): Promise<void> {
  const post = (message: FromThread<EnginesDescribed, ThreadNotice>): void => port.postMessage(message);
  const { createEngines } = (await import(enginesModule)) as EnginesModule;
  const desk = new RecognitionDesk({
    available: await createEngines(settings),
    preferred: settings.preferred,
    processes: settings.processes,
    onEvent: (streamKey, event) => post({ type: 'notice', notice: { type: 'event', streamKey, event } }),
    onBroken: (instance) => post({ type: 'notice', notice: { type: 'recognizer.broken', ...instance } }),
  });
  answerCalls<RecognitionCalls>(port, {
    calls: {
      'stream.open': (request) => desk.open(request),
      'stream.configure': ({ streamKey, change }) => desk.configure(streamKey, change),
      'stream.close': ({ streamKey }) => {
        desk.close(streamKey);
        return null;
      },
      'engines.describe': () => desk.describe(),
    },
    drain: () => desk.drain(),
    codeOf: (error) => (error instanceof TandemError ? error.code : null),
  });
  post({ type: 'ready', ready: await desk.describe() });
}

interface EnginesModule {
  createEngines: (settings: EngineSettings) => Promise<AvailableEngines>;
}

if (parentPort !== null) await serve(parentPort, workerData as ThreadData);
