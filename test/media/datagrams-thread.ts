import { parentPort, workerData } from 'node:worker_threads';
import { IoUringDatagrams } from '../../media/datagrams/datagrams.io-uring.ts';
import { RingMappings } from '../../media/datagrams/io-uring.ts';
import { openSystemCalls } from '../../media/datagrams/system-calls.ts';

/** Binds a socket, posts its port and waits to be terminated. */
const datagrams = new IoUringDatagrams(openSystemCalls(), new RingMappings(workerData));
const socket = await datagrams.bind({ host: '127.0.0.1', port: 0, receive: () => {} });
parentPort!.postMessage(socket.port);
