import { createSecretKey, type KeyObject, randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { parseArgs } from 'node:util';
import { routingOf } from '../actors/call-routing.ts';
import type { SrtpKeys, SrtpSuite } from '../machines/events.ts';
import { Endpoint } from '../media/datagrams/endpoint.ts';
import { FastPath } from '../media/relay/fast-path.ts';
import { FramePacer } from '../media/relay/frame-pacer.ts';
import { SendRing } from '../media/relay/send-ring.ts';
import { RelaySession } from '../media/relay/session.ts';
import { buildRtpPacket } from '../media/rtp/packet.ts';
import { MOST_SRTP_OVERHEAD_BYTES, SUITES } from '../media/srtp/crypto-suites.ts';
import { SrtpSender } from '../media/srtp/srtp-sender.ts';
import { MemoryDatagrams } from './memory-datagrams.ts';

/**
 * CPU time that SRTP adds to a relayed packet. G.711 packets pass through an in-memory session of two parties, plain
 * and with each suite on one leg or both. The reference is the plain relay of the same packets, plus the cost of
 * receiving and sending in a bare `dgram` forwarder in the same run. Contenders alternate, because the machine's speed
 * drifts.
 */

const { values: flags } = parseArgs({
  options: { packets: { type: 'string', default: '5000' }, rounds: { type: 'string', default: '8' } },
});
const PACKETS = Number(flags.packets);
const ROUNDS = Number(flags.rounds);
const PACKET_MS = 20;
const SSRC = 0x1000;
const PAYLOAD = new Uint8Array(160).fill(0xd5);
const PHONES = { agent: 50_000, customer: 50_002 } as const;

/** The sending party's suite, then the receiving party's; null is plain RTP. */
type Suites = readonly [SrtpSuite | null, SrtpSuite | null];

const PLAIN = 'plain relay';
const FORWARDER = 'bare dgram forwarder';
const CONTENDERS: readonly { name: string; suites: Suites }[] = [
  { name: PLAIN, suites: [null, null] },
  ...(Object.keys(SUITES) as SrtpSuite[]).flatMap((suite): { name: string; suites: Suites }[] => [
    { name: `${suite}, sending`, suites: [null, suite] },
    { name: `${suite}, receiving`, suites: [suite, null] },
    { name: `${suite}, both legs`, suites: [suite, suite] },
  ]),
];

const cpuUs = new Map<string, number[]>([FORWARDER, ...CONTENDERS.map(({ name }) => name)].map((name) => [name, []]));
for (let round = -1; round < ROUNDS; round++) {
  const note = (name: string, us: number): void => {
    // The first round warms up the compiler.
    if (round >= 0) cpuUs.get(name)!.push(us);
  };
  note(FORWARDER, await forward());
  for (const { name, suites } of CONTENDERS) note(name, await relay(suites));
}
/** The fastest round, because other load only adds time. */
const bestOf = (name: string): number => Math.min(...cpuUs.get(name)!);
const io = bestOf(FORWARDER);
const reference = io + bestOf(PLAIN);
console.log(
  `CPU a packet, the best of ${ROUNDS} rounds of ${PACKETS} packets; ratio to receiving, relaying and sending it`,
);
console.log(`${FORWARDER}: ${io.toFixed(2)} us; ${PLAIN} in memory: ${bestOf(PLAIN).toFixed(2)} us`);
for (const { name } of CONTENDERS.slice(1)) {
  const added = bestOf(name) - bestOf(PLAIN);
  console.log(
    `${name.padEnd(40)} +${added.toFixed(2).padStart(5)} us  ratio ${((reference + added) / reference).toFixed(2)}`,
  );
}

/** CPU microseconds to relay a packet, without sockets. */
async function relay([spoken, heard]: Suites): Promise<number> {
  const datagrams = new MemoryDatagrams();
  let nowMs = 0;
  const session = await RelaySession.open({
    clock: { nowMs: () => nowMs, unixMs: () => nowMs },
    bindHost: '127.0.0.1',
    rtpPorts: { agent: 40_000, customer: 40_002 },
    rtpTimeoutMs: 20_000,
    datagrams,
    pacer: new FramePacer(),
    sendRing: new SendRing(),
    fastPath: new FastPath(datagrams),
    post: () => {},
  });
  const keys = spoken === null ? null : keysOf(spoken);
  await connect(session, 'agent', keys);
  await connect(session, 'customer', heard === null ? null : keysOf(heard));
  session.setRouting(routingOf('bridged'));
  const packets = packetsOf(PACKETS, keys);
  const source = Endpoint.of('127.0.0.1', PHONES.agent);
  const receive = datagrams.receiverAt(40_000);
  const before = process.cpuUsage();
  for (const packet of packets) {
    nowMs += PACKET_MS;
    receive(packet, source);
  }
  const { user, system } = process.cpuUsage(before);
  const { sent } = datagrams;
  if (sent !== PACKETS) throw new Error(`${sent} of ${PACKETS} packets were relayed`);
  await session.close();
  return (user + system) / PACKETS;
}

async function connect(session: RelaySession, party: keyof typeof PHONES, srtp: SrtpKeys | null): Promise<void> {
  await session.connectParty(party, {
    host: '127.0.0.1',
    rtpPort: PHONES[party],
    rtcpPort: 0,
    codec: 'PCMU',
    payloadType: 0,
    telephoneEventPayloadType: null,
    direction: 'sendrecv',
    ...(srtp !== null && { srtp }),
  });
}

/** CPU microseconds to receive and send a packet, which returns to the socket that sent it. */
async function forward(): Promise<number> {
  const socket = createSocket('udp4');
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  const { port } = socket.address();
  const packet = packetsOf(1, null)[0]!;
  const { promise: done, resolve } = Promise.withResolvers<void>();
  let received = 0;
  socket.on('message', (datagram) => {
    if (++received === PACKETS) resolve();
    else socket.send(datagram, port, '127.0.0.1');
  });
  const before = process.cpuUsage();
  for (let inFlight = 0; inFlight < 50; inFlight++) socket.send(packet, port, '127.0.0.1');
  await done;
  const { user, system } = process.cpuUsage(before);
  socket.close();
  return (user + system) / PACKETS;
}

function packetsOf(count: number, keys: SrtpKeys | null): Buffer[] {
  const sender =
    keys === null ? null : new SrtpSender({ suite: keys.suite, master: keys.remote as KeyObject, ssrc: SSRC });
  return Array.from({ length: count }, (_, index) => {
    const fields = { payloadType: 0, sequence: index & 0xffff, timestamp: index * 160, ssrc: SSRC };
    const packet = buildRtpPacket(fields, PAYLOAD);
    if (sender === null) return packet;
    const room = Buffer.concat([packet], packet.length + MOST_SRTP_OVERHEAD_BYTES);
    return room.subarray(0, sender.protectRtp(room, packet.length));
  });
}

function keysOf(suite: SrtpSuite): SrtpKeys {
  const newKey = () => createSecretKey(randomBytes(SUITES[suite].keyBytes + SUITES[suite].saltBytes));
  return { suite, serial: 1, local: newKey(), remote: newKey() };
}
