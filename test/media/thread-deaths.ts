import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { EpollDatagrams } from '../../media/datagrams/datagrams.epoll.ts';
import { IoUringDatagrams } from '../../media/datagrams/datagrams.io-uring.ts';
import { openSystemCalls } from '../../media/datagrams/system-calls.ts';

/**
 * A process whose threads die while packets arrive, one after the other: half are terminated, half end themselves.
 * Prints how many have died. Arguments: `io_uring` or `epoll`, and how many.
 */
if (isMainThread) {
  const [io, threads] = [process.argv[2], Number(process.argv[3])];
  const peer = createSocket('udp4');
  for (let i = 0; i < threads; i++) {
    const thread = new Worker(import.meta.filename, { workerData: { io, endsItself: i % 2 === 1 } });
    const exited = once(thread, 'exit');
    const [port] = (await once(thread, 'message')) as [number];
    const sender = setInterval(() => {
      for (let packet = 0; packet < 3; packet++) peer.send('packet', port, '127.0.0.1');
    });
    // What a thread posts last may be lost with it.
    await Promise.race([once(thread, 'message'), exited]);
    if (i % 2 === 0) await thread.terminate();
    await exited;
    clearInterval(sender);
  }
  peer.close();
  console.log(`${threads} died`);
} else {
  const { io, endsItself } = workerData as { io: string; endsItself: boolean };
  const calls = openSystemCalls();
  const datagrams = io === 'epoll' ? new EpollDatagrams(calls) : new IoUringDatagrams(calls);
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
