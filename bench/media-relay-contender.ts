import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { MessageChannel, type MessagePort, parentPort, workerData } from 'node:worker_threads';
import { RECORDING_CHANNELS, routingOf } from '../actors/call-routing.ts';
import type { RemoteMedia } from '../machines/events.ts';
import { DgramDatagrams } from '../media/datagrams/datagrams.dgram.ts';
import { PortPairs } from '../media/port-pairs.ts';
import { FramePacer } from '../media/relay/frame-pacer.ts';
import { SendRing } from '../media/relay/send-ring.ts';
import { PortTakenError, RelaySession, SESSION_TICK_MS } from '../media/relay/session.ts';

/** One contender of `media-relay.ts` in its own thread, so that its CPU time is its own. */

export type Contender = 'bare forwarder' | 'relay' | 'relay, transcoding' | 'relay, recording' | 'relay, tapped';

export interface ContenderInput {
  contender: Contender;
  /** Ports of the phones on 127.0.0.1, `[agent, customer]` per call. */
  calls: [number, number][];
}

export type ContenderRequest = 'start' | 'stop';

export type ContenderAnswer =
  /** Where the phones of each call send to, `[agent, customer]`, and what its legs are tapped by. */
  | { type: 'listening'; ports: [number, number][]; taps: MessagePort[] }
  /** CPU time of the thread since `start`. */
  | { type: 'measured'; cpuMs: number };

const { contender, calls } = workerData as ContenderInput;
const closers: (() => Promise<unknown>)[] = [];
const taps: MessagePort[] = [];
const ports = contender === 'bare forwarder' ? await openForwarders() : await openRelay();
let started = process.threadCpuUsage();
parentPort!.on('message', (request: ContenderRequest) => {
  if (request === 'start') {
    started = process.threadCpuUsage();
    return;
  }
  const used = process.threadCpuUsage(started);
  parentPort!.postMessage({ type: 'measured', cpuMs: (used.user + used.system) / 1000 } satisfies ContenderAnswer);
  void Promise.all(closers.map((close) => close())).then(() => parentPort!.close());
});
parentPort!.postMessage({ type: 'listening', ports, taps } satisfies ContenderAnswer, taps);

/** The least that a relay in Node can do: two sockets a call, and what one hears the other sends. */
function openForwarders(): Promise<[number, number][]> {
  return Promise.all(
    calls.map(async ([agentPort, customerPort]): Promise<[number, number]> => {
      const [agent, customer] = await Promise.all([openSocket(), openSocket()]);
      agent.on('message', (datagram) => customer.send(datagram, customerPort, '127.0.0.1'));
      customer.on('message', (datagram) => agent.send(datagram, agentPort, '127.0.0.1'));
      closers.push(
        async () => agent.close(),
        async () => customer.close(),
      );
      return [agent.address().port, customer.address().port];
    }),
  );
}

async function openRelay(): Promise<[number, number][]> {
  const pairs = new PortPairs({ min: 20_000, max: 59_999 });
  const shared = { datagrams: new DgramDatagrams(), pacer: new FramePacer(), sendRing: new SendRing() };
  const folder = mkdtempSync(join(tmpdir(), 'tandem-bench-'));
  const sessions: RelaySession[] = [];
  const bound: [number, number][] = [];
  for (const [agentPort, customerPort] of calls) {
    const { session, rtpPorts } = await openSession(pairs, shared);
    await session.connectParty('agent', remote(agentPort, 'PCMU'));
    await session.connectParty('customer', remote(customerPort, contender === 'relay, transcoding' ? 'PCMA' : 'PCMU'));
    session.setRouting(routingOf('bridged'));
    if (contender === 'relay, recording')
      await session.startRecording({
        filePath: join(folder, `${agentPort}.wav`),
        channels: RECORDING_CHANNELS,
      });
    if (contender === 'relay, tapped') session.startTap({ agent: tap(), customer: tap() });
    sessions.push(session);
    bound.push(rtpPorts);
  }
  // As worker.ts does: sessions take turns.
  let turn = 0;
  const ticker = setInterval(() => {
    turn = (turn + 1) % 10;
    for (let index = turn; index < sessions.length; index += 10) sessions[index]!.tick();
  }, SESSION_TICK_MS / 10);
  closers.push(async () => {
    clearInterval(ticker);
    await Promise.all(sessions.map((session) => session.close()));
    rmSync(folder, { recursive: true });
  });
  return bound;
}

async function openSession(
  pairs: PortPairs,
  shared: { datagrams: DgramDatagrams; pacer: FramePacer; sendRing: SendRing },
): Promise<{ session: RelaySession; rtpPorts: [number, number] }> {
  for (;;) {
    const agent = pairs.take();
    const customer = pairs.take();
    if (agent === null || customer === null) throw new RangeError('no ports left');
    const options = { ...shared, bindHost: '127.0.0.1', rtpTimeoutMs: 20_000, post: () => {} };
    try {
      const session = await RelaySession.open({ ...options, rtpPorts: { agent, customer } });
      return { session, rtpPorts: [agent, customer] };
    } catch (error) {
      if (!(error instanceof PortTakenError)) throw error;
    }
  }
}

/** The end that the relay posts to; the other one is for whoever listens. */
function tap(): MessagePort {
  const { port1, port2 } = new MessageChannel();
  taps.push(port2);
  return port1;
}

function remote(rtpPort: number, codec: RemoteMedia['codec']): RemoteMedia {
  const payloadType = codec === 'PCMU' ? 0 : 8;
  const common = { host: '127.0.0.1', rtcpPort: 9, telephoneEventPayloadType: 101, direction: 'sendrecv' } as const;
  return { ...common, rtpPort, codec, payloadType };
}

async function openSocket(): Promise<Socket> {
  // As in the relay: Node's resolver would cost the reference a turn of the event loop per packet.
  const socket = createSocket({ type: 'udp4', lookup: (host, _options, callback) => callback(null, host, 4) });
  // Listening before it is awaited: with that resolver binding is immediate.
  const listening = once(socket, 'listening');
  socket.bind(0, '127.0.0.1');
  await listening;
  return socket;
}
