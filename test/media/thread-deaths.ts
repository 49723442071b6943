import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { type DatagramIo, datagramsMemory, openDatagrams } from '../../media/datagrams/open-datagrams.ts';

/**
 * A process whose threads die one after the other while packets arrive: half are terminated, half end themselves.
 * Prints the number of deaths and of asynchronous I/O contexts that the kernel still holds after each thread was
 * replaced.
 * Arguments: `io_uring` or `epoll`, and the number of threads.
 */
if (isMainThread) {
  const [io, threads] = [process.argv[2] as DatagramIo, Number(process.argv[3])];
  const memory = datagramsMemory();
  const peer = createSocket('udp4');
  for (let i = 0; i < threads; i++) {
    const thread = new Worker(import.meta.filename, { workerData: { io, memory, endsItself: i % 2 === 1 } });
    const exited = once(thread, 'exit');
    const [port] = (await once(thread, 'message')) as [number];
    const sender = setInterval(() => {
      for (let packet = 0; packet < 3; packet++) peer.send('packet', port, '127.0.0.1');
    });
    // The last message of a thread may be lost.
    await Promise.race([once(thread, 'message'), exited]);
    if (i % 2 === 0) await thread.terminate();
    await exited;
    clearInterval(sender);
  }
  peer.close();
  const { datagrams } = await openDatagrams(io, memory);
  datagrams.close();
  const kept = readFileSync('/proc/self/maps', 'utf8').match(/\[aio\]/g) ?? [];
  console.log(`${threads} died, ${kept.length} kept`);
} else {
  const { io, memory, endsItself } = workerData as { io: DatagramIo; memory: SharedArrayBuffer; endsItself: boolean };
  const { datagrams } = await openDatagrams(io, memory);
  let received = 0;
  const socket = await datagrams.bind({
    host: '127.0.0.1',
    port: 0,
    receive: () => {
      received += 1;
      if (received !== 20) return;
      parentPort!.postMessage('busy');
      if (endsItself) setTimeout(() => process.exit(1), 5);
    },
  });
  parentPort!.postMessage(socket.port);
}
