import { type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { TandemError } from '../../machines/errors.ts';
import type { AvailableEngines, EngineSettings } from '../engines/available-engines.ts';
import type { FromThread, ThreadCall, ThreadCalls, ThreadData, ThreadFailure, ToThread } from './protocol.ts';
import { RecognitionDesk } from './recognition-desk.ts';

/** Entry of the speech thread: makes the engines, and answers the main thread. */

async function serve(port: MessagePort, { settings, enginesModule }: ThreadData): Promise<void> {
  const post = (message: FromThread): void => port.postMessage(message);
  const { createEngines } = (await import(enginesModule)) as EnginesModule;
  const desk = new RecognitionDesk({
    available: await createEngines(settings),
    preferred: settings.preferred,
    processes: settings.processes,
    onEvent: (streamKey, event) => post({ type: 'event', streamKey, event }),
    onBroken: (instance) => post({ type: 'recognizer.broken', ...instance }),
  });
  port.on('message', (message: ToThread) => {
    const { requestId } = message;
    perform(desk, message).then(
      (answer) => post({ type: 'done', requestId, answer }),
      (error: unknown) => post({ type: 'failed', requestId, failure: failureOf(error) }),
    );
  });
  post({ type: 'ready', ...(await desk.describe()) });
}

interface EnginesModule {
  createEngines: (settings: EngineSettings) => Promise<AvailableEngines>;
}

async function perform(desk: RecognitionDesk, message: ToThread): Promise<ThreadCalls[ThreadCall]['answer']> {
  switch (message.type) {
    case 'stream.open':
      return await desk.open(message);
    case 'stream.configure':
      return await desk.configure(message.streamKey, message.change);
    case 'stream.close':
      desk.close(message.streamKey);
      return null;
    case 'engines.describe':
      return await desk.describe();
    case 'thread.ping':
      return null;
    case 'thread.drain':
      await desk.drain();
      return null;
  }
}

function failureOf(error: unknown): ThreadFailure {
  const message = error instanceof Error ? error.message : String(error);
  return { code: error instanceof TandemError ? error.code : 'INTERNAL', message };
}

if (parentPort !== null) await serve(parentPort, workerData as ThreadData);
