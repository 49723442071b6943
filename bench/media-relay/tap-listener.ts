import { type MessagePort, parentPort } from 'node:worker_threads';
import { SampleRing } from '../../media/sample-ring.ts';

/** Takes what taps write, at the pace of a listening worker, and hears nothing. */
const rings: SampleRing[] = [];
const samples = new Int16Array(4096);
parentPort!.on('message', (port: MessagePort) => {
  port.on('message', (memory: SharedArrayBuffer) => rings.push(new SampleRing(memory)));
});
setInterval(() => {
  for (const ring of rings) while (ring.read(samples) === samples.length);
}, 40);
