import { type MessagePort, parentPort } from 'node:worker_threads';
import { SampleRing } from '../../media/sample-ring.ts';

/** Reads what taps write, at the pace of a listening worker, and discards it. */
const rings: SampleRing[] = [];
const samples = new Int16Array(4096);
parentPort!.on('message', (port: MessagePort) => {
  port.on('message', (memory: SharedArrayBuffer) => rings.push(new SampleRing(memory)));
});
setInterval(() => {
  for (const ring of rings) while (ring.read(samples) === samples.length);
}, 40);
