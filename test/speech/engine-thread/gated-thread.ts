import { parentPort, workerData } from 'node:worker_threads';
import { answerCalls } from '../../../speech/engine-thread/answer-calls.ts';

export interface GatedCalls {
  echo: { request: { text: string }; answer: string };
  hang: { request: object; answer: null };
  die: { request: object; answer: never };
}

/** Shut while it is 0. */
export interface Gate {
  gate: Int32Array;
}

/** A thread that is ready once its gate is open, and answers nothing before, as one does that loads modules. */
const { gate } = workerData as Gate;
Atomics.wait(gate, 0, 0);

answerCalls<GatedCalls>(parentPort!, {
  calls: {
    echo: ({ text }) => text,
    hang() {
      Atomics.wait(gate, 0, 1);
      return null;
    },
    die: () => process.exit(1),
  },
  drain: async () => {},
  codeOf: () => null,
});
parentPort!.postMessage({ type: 'ready', ready: 'as can be' });
