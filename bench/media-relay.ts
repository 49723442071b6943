import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import type { BytesTaken } from '../machines/utterances.ts';
import { toneFrames } from '../media/dsp/tones.ts';
import { buildRtpPacket } from '../media/rtp/packet.ts';
import type { Contender, ContenderAnswer, ContenderInput, ContenderRequest } from './media-relay-contender.ts';

/**
 * What the relay costs over the least that Node can do. Every contender forwards the same calls, 50 packets a second
 * each way, in a thread of its own whose CPU time is measured; the reference, a bare `dgram` forwarder, runs first and
 * last in the same run, because the machine's mood changes. Usage: node bench/media-relay.ts [calls] [seconds]
 */

const CALLS = Number(process.argv[2] ?? 100);
const MEASURE_MS = 1000 * Number(process.argv[3] ?? 1.8);
const WARM_UP_MS = 400;
const speech = toneFrames('PCMU', { frequenciesHz: [440], durationMs: 1000 });

const order: Contender[] = [
  'bare forwarder',
  'relay',
  'relay, transcoding',
  'relay, recording',
  'relay, tapped',
  'bare forwarder',
];
const results: Result[] = [];
for (const contender of order) results.push(await measure(contender));
report(results);

interface Result {
  contender: Contender;
  sent: number;
  received: number;
  cpuMs: number;
}

async function measure(contender: Contender): Promise<Result> {
  const phones = await Promise.all(Array.from({ length: 2 * CALLS }, openPhone));
  const portOf = (index: number): number => phones[index]!.address().port;
  const calls = Array.from({ length: CALLS }, (_, call): [number, number] => [portOf(2 * call), portOf(2 * call + 1)]);
  const input: ContenderInput = { contender, calls };
  const worker = new Worker(new URL('./media-relay-contender.ts', import.meta.url), { workerData: input });
  const ask = (request: ContenderRequest): void => worker.postMessage(request);
  const targets = await answerOf(worker, 'listening');
  for (const tap of targets.taps) {
    tap.on('message', ({ length: bytes }: Uint8Array) => {
      tap.postMessage({ type: 'bytes.taken', bytes } satisfies BytesTaken);
    });
  }

  let received = 0;
  for (const phone of phones) phone.on('message', () => received++);
  // The phones of a leg that transcodes speak its codec.
  const customerPayloadType = contender === 'relay, transcoding' ? 8 : 0;
  let frame = 0;
  let sent = 0;
  const sendFrame = (): void => {
    for (const [index, phone] of phones.entries()) {
      const isCustomer = index % 2 === 1;
      const fields = {
        payloadType: isCustomer ? customerPayloadType : 0,
        sequence: frame,
        timestamp: frame * 160,
        ssrc: index,
      };
      const target = targets.ports[index >> 1]![isCustomer ? 1 : 0];
      phone.send(buildRtpPacket(fields, speech[frame % speech.length]!), target, '127.0.0.1');
    }
    sent += phones.length;
    frame += 1;
  };
  await runFor(WARM_UP_MS, sendFrame);
  ask('start');
  [sent, received] = [0, 0];
  await runFor(MEASURE_MS, sendFrame);
  const [sentMeasured, receivedMeasured] = [sent, received];
  const answer = answerOf(worker, 'measured');
  ask('stop');
  const { cpuMs } = await answer;
  await once(worker, 'exit');
  for (const phone of phones) phone.close();
  return { contender, sent: sentMeasured, received: receivedMeasured, cpuMs };
}

function report(all: Result[]): void {
  const perMillion = (result: Result): number => (result.cpuMs * 1000) / result.received;
  const references = all.filter(({ contender }) => contender === 'bare forwarder').map(perMillion);
  const reference = references.reduce((sum, value) => sum + value, 0) / references.length;
  console.log(
    `${CALLS} calls, ${100 * CALLS} packets/s; CPU-seconds per million packets, and the ratio to the bare forwarder`,
  );
  for (const result of all) {
    const cpu = perMillion(result);
    const delivered = `${((100 * result.received) / result.sent).toFixed(1)} % delivered`;
    const oneCore = `${Math.round(1e6 / cpu / 100)} calls per core`;
    console.log(
      `${result.contender.padEnd(20)} ${cpu.toFixed(2).padStart(6)}  x${(cpu / reference).toFixed(2)}  ${delivered}  ${oneCore}`,
    );
  }
}

/** Calls at 50 Hz; late frames are made up for. */
function runFor(durationMs: number, sendFrame: () => void): Promise<void> {
  const startMs = performance.now();
  let frames = 0;
  return new Promise((resolve) => {
    const timer = setInterval(() => {
      const elapsedMs = performance.now() - startMs;
      for (; frames * 20 <= Math.min(elapsedMs, durationMs); frames++) sendFrame();
      if (elapsedMs < durationMs + 40) return;
      clearInterval(timer);
      resolve();
    }, 5);
  });
}

async function answerOf<Type extends ContenderAnswer['type']>(
  worker: Worker,
  type: Type,
): Promise<Extract<ContenderAnswer, { type: Type }>> {
  const [answer] = (await once(worker, 'message')) as [ContenderAnswer];
  if (answer.type !== type) throw new RangeError(`the contender answered ${answer.type} instead of ${type}`);
  return answer as Extract<ContenderAnswer, { type: Type }>;
}

async function openPhone(): Promise<Socket> {
  const socket = createSocket({ type: 'udp4', lookup: (host, _options, callback) => callback(null, host, 4) });
  // Listening before it is awaited: with that resolver binding is immediate.
  const listening = once(socket, 'listening');
  socket.bind(0, '127.0.0.1');
  await listening;
  return socket;
}
