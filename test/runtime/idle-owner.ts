import { SupervisedThread } from '../../runtime/supervised-thread.ts';
import type { GatedThread } from './gated-thread.ts';

/** A process whose only remaining work is an idle thread. Prints the answer of the thread. */
const thread = new SupervisedThread<GatedThread>({
  entry: new URL('./gated-thread.ts', import.meta.url),
  data: { gate: new Int32Array(new SharedArrayBuffer(4)).fill(1) },
  name: 'the idle thread',
  keepsProcess: 'while-busy',
});
process.stdout.write(await thread.call('echo', { text: 'answered' }));
