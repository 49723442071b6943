import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads';
import type { Codec, RemoteMedia } from '../../machines/events.ts';
import { type DatagramIo, openDatagrams } from '../../media/datagrams/open-datagrams.ts';
import { FastPath } from '../../media/relay/fast-path.ts';
import { FramePacer } from '../../media/relay/frame-pacer.ts';
import { SendRing } from '../../media/relay/send-ring.ts';
import { RelaySession, SESSION_TICK_MS } from '../../media/relay/session.ts';
import { SessionTicker } from '../../media/session-ticker.ts';

/**
 * A contender of `media-relay.ts` in a process of its own. Reads one line of JSON with the phones' ports on 127.0.0.1,
 * `[agent, customer]` per call, and prints the ports to send to. When its input ends, it prints the growth of its heap.
 */

export interface ContenderOptions {
  /** `forwarder`: two `dgram` sockets per call, and nothing else. */
  io: DatagramIo | 'forwarder';
  recording?: boolean;
  tapped?: boolean;
  transcoding?: boolean;
}

export interface ContenderReport {
  /** After a garbage collection, since the first packets. */
  heapGrowthBytes: number;
  /** Sum of the growth between samples, so a lower bound. */
  allocatedBytes: number;
  detail: unknown;
}

const options = JSON.parse(process.argv[2]!) as ContenderOptions;
const lines = createInterface({ input: process.stdin });
const [line] = (await once(lines, 'line')) as [string];
const calls = JSON.parse(line) as [number, number][];
const listener = options.tapped ? new Worker(new URL('./tap-listener.ts', import.meta.url)) : null;
const folder = mkdtempSync(join(tmpdir(), 'tandem-bench-'));
const { ports, dump } = options.io === 'forwarder' ? await openForwarders() : await openRelay(options.io);
process.stdout.write(`${JSON.stringify(ports)}\n`);
const heap = watchHeap();
await once(lines, 'close');
const report: ContenderReport = { ...heap(), detail: dump() };
process.stdout.write(`${JSON.stringify(report)}\n`);
rmSync(folder, { recursive: true });
process.exit();

/** The minimum of a relay in Node. */
async function openForwarders(): Promise<{ ports: [number, number][]; dump: () => unknown }> {
  const bound: [number, number][] = [];
  for (const [agentPort, customerPort] of calls) {
    const [agent, customer] = await Promise.all([openSocket(), openSocket()]);
    agent.on('message', (datagram) => customer.send(datagram, customerPort, '127.0.0.1'));
    customer.on('message', (datagram) => agent.send(datagram, agentPort, '127.0.0.1'));
    bound.push([agent.address().port, customer.address().port]);
  }
  return { ports: bound, dump: () => null };
}

async function openRelay(io: DatagramIo): Promise<{ ports: [number, number][]; dump: () => unknown }> {
  const { datagrams, unavailable } = await openDatagrams(io);
  if (unavailable.length > 0) throw new Error(`${io}: ${unavailable[0]!.reason}`);
  const fastPath = new FastPath(datagrams);
  const shared = { datagrams, pacer: new FramePacer(), sendRing: new SendRing(), fastPath };
  const ticker = new SessionTicker(SESSION_TICK_MS);
  const sessions: RelaySession[] = [];
  const bound: [number, number][] = [];
  for (const [index, [agentPort, customerPort]] of calls.entries()) {
    // Below the system's ephemeral ports, which the phones use.
    const rtpPorts = { agent: 10_000 + 4 * index, customer: 10_002 + 4 * index };
    const session = await RelaySession.open({
      ...shared,
      bindHost: '127.0.0.1',
      rtpTimeoutMs: 20_000,
      post: () => {},
      rtpPorts,
    });
    await session.connectParty('agent', remote(agentPort, 'PCMU'));
    await session.connectParty('customer', remote(customerPort, options.transcoding ? 'PCMA' : 'PCMU'));
    session.setRouting({ receives: { agent: [{ party: 'customer' }], customer: [{ party: 'agent' }] }, watched: [] });
    if (options.recording) {
      const filePath = join(folder, `${index}.wav`);
      await session.startRecording({ filePath, channels: { agent: 0, customer: 1 } });
    }
    if (options.tapped) session.startTap({ agent: tap(), customer: tap() });
    ticker.add(session);
    sessions.push(session);
    bound.push([rtpPorts.agent, rtpPorts.customer]);
  }
  return { ports: bound, dump: () => ({ io: datagrams.dump(), session: sessions[0]!.dump() }) };
}

/** The relay's end of a tap. A thread at the other end reads everything and does nothing. */
function tap(): MessagePort {
  const { port1, port2 } = new MessageChannel();
  listener!.postMessage(port2, [port2]);
  return port1;
}

function remote(rtpPort: number, codec: Codec): RemoteMedia {
  const payloadType = codec === 'PCMU' ? 0 : 8;
  const common = { host: '127.0.0.1', rtcpPort: 9, telephoneEventPayloadType: 101, direction: 'sendrecv' } as const;
  return { ...common, rtpPort, codec, payloadType };
}

function watchHeap(): () => Omit<ContenderReport, 'detail'> {
  const used = (): number => process.memoryUsage().heapUsed;
  const collect = globalThis.gc!;
  let baseline = 0;
  let last = 0;
  let allocatedBytes = 0;
  const sampler = setInterval(() => {
    const now = used();
    if (now > last) allocatedBytes += now - last;
    last = now;
  }, 20);
  // The first second is warm-up.
  setTimeout(() => {
    collect();
    baseline = used();
    last = baseline;
    allocatedBytes = 0;
  }, 1000);
  return () => {
    clearInterval(sampler);
    collect();
    return { heapGrowthBytes: used() - baseline, allocatedBytes };
  };
}

async function openSocket(): Promise<Socket> {
  // As in the relay: Node's resolver would cost the reference an event loop turn per packet.
  const socket = createSocket({ type: 'udp4', lookup: (host, _options, callback) => callback(null, host, 4) });
  // Before the await, because with that resolver binding is immediate.
  const listening = once(socket, 'listening');
  socket.bind(0, '127.0.0.1');
  await listening;
  return socket;
}
