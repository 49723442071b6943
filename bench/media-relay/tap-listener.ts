import { type MessagePort, parentPort } from 'node:worker_threads';
import type { BytesTaken } from '../../machines/utterances.ts';

/** Takes what taps post, as a listening worker does, and hears nothing. */
parentPort!.on('message', (port: MessagePort) => {
  port.on('message', ({ length: bytes }: Uint8Array) => {
    port.postMessage({ type: 'bytes.taken', bytes } satisfies BytesTaken);
  });
});
