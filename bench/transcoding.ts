import { parseArgs } from 'node:util';
import { routingOf } from '../actors/call-routing.ts';
import { CODECS, type Codec, type RemoteMedia } from '../machines/events.ts';
import { encodeG711 } from '../media/codecs/g711.ts';
import { G722Encoder } from '../media/codecs/g722.ts';
import { OpusEncoder } from '../media/codecs/opus.ts';
import { Endpoint } from '../media/datagrams/endpoint.ts';
import { FastPath } from '../media/relay/fast-path.ts';
import { FramePacer } from '../media/relay/frame-pacer.ts';
import { SendRing } from '../media/relay/send-ring.ts';
import { RelaySession } from '../media/relay/session.ts';
import { buildRtpPacket } from '../media/rtp/packet.ts';
import { openLibopus, openSpandsp } from './c-codecs.ts';
import { FRAME_SAMPLES, speech } from './codec-contest.ts';
import { MemoryDatagrams } from './memory-datagrams.ts';

/**
 * CPU time of transcoding a packet of 20 ms, from receiving to sending, without sockets: jitter buffer, decoder,
 * resampling between 8 and 16 kHz, encoder. The reference is an unchanged relayed packet plus the same codecs in C
 * (Debian's libopus0 and libspandsp2) on the same frames, in the same run. G.711 counts as free there, because it is a
 * table.
 */

const { values: flags } = parseArgs({
  options: { packets: { type: 'string', default: '1000' }, rounds: { type: 'string', default: '5' } },
});
const PACKETS = Number(flags.packets);
const ROUNDS = Number(flags.rounds);
const PACKET_MS = 20;
const PHONES = { agent: 50_000, customer: 50_002 } as const;

/** The sending party's codec, then the receiving party's. */
type Pair = readonly [Codec, Codec];

const PLAIN: Pair = ['PCMU', 'PCMU'];
const PAIRS: readonly Pair[] = [
  ['PCMU', 'G722'],
  ['G722', 'PCMU'],
  ['PCMU', 'OPUS'],
  ['OPUS', 'PCMU'],
  ['G722', 'OPUS'],
  ['OPUS', 'G722'],
];

const C_CODECS = { OPUS: await openLibopus(), G722: await openSpandsp() };
for (const [codec, contender] of Object.entries(C_CODECS)) {
  if (contender === null) console.log(`The Debian library for ${codec} is not installed; no reference with it.`);
}
const payloads = await encodedSpeech();

/** Microseconds of the fastest round, by name, because other load only adds time. */
const best = new Map<string, number>();
for (let round = -1; round < ROUNDS; round++) {
  const note = (name: string, us: number): void => {
    // The first round warms up the compiler.
    if (round >= 0) best.set(name, Math.min(best.get(name) ?? us, us));
  };
  for (const pair of [PLAIN, ...PAIRS]) note(pair.join(' to '), await relay(pair));
  for (const [codec, contender] of Object.entries(C_CODECS)) {
    if (contender === null) continue;
    note(`${codec} encode`, await timed((frame) => void contender.encode(speech[frame % speech.length]!)));
    note(`${codec} decode`, await timed((frame) => contender.decode(payloadOf(codec as Codec, frame))));
  }
}

const relayed = best.get(PLAIN.join(' to '))!;
console.log(`CPU a packet of 20 ms, the best of ${ROUNDS} rounds of ${PACKETS} packets, without sockets`);
console.log(`relayed as it came: ${relayed.toFixed(2)} us`);
for (const pair of PAIRS) {
  const name = pair.join(' to ');
  const ours = best.get(name)!;
  const inC = inCOf(pair);
  const ratio = inC === null ? 'no reference' : `ratio ${(ours / (relayed + inC)).toFixed(2)}`;
  const reference = inC === null ? '' : `, relay and C ${(relayed + inC).toFixed(2).padStart(6)} us`;
  console.log(`${name.padEnd(13)} ${ours.toFixed(2).padStart(6)} us${reference}  ${ratio}`);
}

/** Cost of a pair's codecs in C; null if a library is missing. */
function inCOf([spoken, heard]: Pair): number | null {
  const decode = isG711(spoken) ? 0 : best.get(`${spoken} decode`);
  const encode = isG711(heard) ? 0 : best.get(`${heard} encode`);
  return decode === undefined || encode === undefined ? null : decode + encode;
}

async function relay([spoken, heard]: Pair): Promise<number> {
  const datagrams = new MemoryDatagrams();
  let nowMs = 0;
  let tick: (() => void) | null = null;
  const pacer = new FramePacer({
    nowMs: () => nowMs,
    after: (_delayMs, callback) => {
      tick = callback;
      return () => {
        tick = null;
      };
    },
  });
  const session = await RelaySession.open({
    clock: { nowMs: () => nowMs, unixMs: () => nowMs },
    bindHost: '127.0.0.1',
    rtpPorts: { agent: 40_000, customer: 40_002 },
    rtpTimeoutMs: 20_000,
    datagrams,
    pacer,
    sendRing: new SendRing(),
    fastPath: new FastPath(datagrams),
    post: () => {},
  });
  await session.connectParty('agent', remoteOf('agent', spoken));
  await session.connectParty('customer', remoteOf('customer', heard));
  session.setRouting(routingOf('bridged'));
  const packets = packetsIn(spoken);
  const source = Endpoint.of('127.0.0.1', PHONES.agent);
  const receive = datagrams.receiverAt(40_000);
  const us = await timed((frame) => {
    nowMs += PACKET_MS;
    receive(packets[frame]!, source);
    tick?.();
  });
  const { sent } = datagrams;
  // The jitter buffer holds the first frames.
  if (sent < PACKETS - 10) throw new Error(`${sent} packets were sent for ${PACKETS}`);
  await session.close();
  return us;
}

/** CPU microseconds per frame. */
async function timed(work: (frame: number) => void): Promise<number> {
  const before = process.cpuUsage();
  for (let frame = 0; frame < PACKETS; frame++) work(frame);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / PACKETS;
}

function remoteOf(party: keyof typeof PHONES, codec: Codec): RemoteMedia {
  const { payloadType } = CODECS[codec];
  const ports = { host: '127.0.0.1', rtpPort: PHONES[party], rtcpPort: 0 };
  return { ...ports, codec, payloadType, telephoneEventPayloadType: null, direction: 'sendrecv' };
}

function packetsIn(codec: Codec): Buffer[] {
  const { payloadType, clockHz } = CODECS[codec];
  const ticks = (clockHz / 1000) * PACKET_MS;
  return Array.from({ length: PACKETS }, (_, frame) => {
    const fields = { payloadType, sequence: frame & 0xffff, timestamp: frame * ticks, ssrc: 0x1000 };
    return buildRtpPacket(fields, payloadOf(codec, frame));
  });
}

function payloadOf(codec: Codec, frame: number): Uint8Array {
  const all = payloads[codec];
  return all[frame % all.length]!;
}

async function encodedSpeech(): Promise<Record<Codec, readonly Uint8Array[]>> {
  const g722 = new G722Encoder();
  const opus = await OpusEncoder.open();
  const g711 = (codec: 'PCMU' | 'PCMA') =>
    speech.map((samples) => {
      const octets = new Uint8Array(FRAME_SAMPLES / 2);
      // Every other sample: the sound does not matter here.
      const narrow = samples.filter((_, i) => i % 2 === 0);
      encodeG711(codec, narrow, octets);
      return octets;
    });
  const encoded = {
    PCMU: g711('PCMU'),
    PCMA: g711('PCMA'),
    G722: speech.map((samples) => {
      const octets = new Uint8Array(FRAME_SAMPLES / 2);
      g722.encode(samples, octets);
      return octets;
    }),
    OPUS: speech.map((samples) => opus.encode(samples).slice()),
  };
  opus.close();
  return encoded;
}

function isG711(codec: Codec): boolean {
  return codec === 'PCMU' || codec === 'PCMA';
}
