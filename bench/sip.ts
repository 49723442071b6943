import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startEmbeddedSipServer } from '../sip/embedded/embedded-sip-server.ts';
import { createDrachtioGateway } from '../sip/sip-gateway.drachtio.ts';
import type { LegDialog } from '../sip/sip-gateway.ts';
import { freePorts } from '../test/free-ports.ts';
import { peerAvailable, type RunningPeer, runPeer, untilListening } from '../test/peers/programs.ts';

/**
 * Sets up and tears down calls over UDP to the same sipp: by our gateway and SIP server, by another sipp, and by that
 * sipp through kamailio. Then holds calls.
 */

const { values } = parseArgs({
  options: {
    calls: { type: 'string', default: '2000' },
    /** At a time. */
    concurrency: { type: 'string', default: '50' },
    held: { type: 'string', default: '200' },
    /** How long they are held. */
    seconds: { type: 'string', default: '5' },
  },
});
const CALLS = Number(values.calls);
const CONCURRENCY = Number(values.concurrency);
const HELD = Number(values.held);
const HELD_MS = Number(values.seconds) * 1000;
const HOST = '127.0.0.1';
const SECRET = 'of-the-benchmark';

interface Setup {
  callsPerSecond: number;
  /** From INVITE, or the request to dial, to the 200. Milliseconds, ascending. */
  answeredMs: number[];
  failed: number;
}

if (!peerAvailable('sipp')) {
  process.stdout.write('bench/sip needs sipp: apt-get install sip-tester\n');
  process.exit(1);
}
const folder = await mkdtemp(join(tmpdir(), 'bench-sip-'));
const calleePort = await freePorts(2);
const callee = runPeer('sipp', {
  cwd: folder,
  args: ['-sn', 'uas', '-i', HOST, '-p', String(calleePort), '-nostdin'],
});
try {
  await untilListening(calleePort, 'udp', callee);
  const direct = await setUpBySipp('sipp to sipp', calleePort);
  print('sipp to sipp', direct, direct);
  if (peerAvailable('kamailio'))
    await withKamailio(async (port) => print('through kamailio', await setUpBySipp('kamailio', port), direct));
  else process.stdout.write('kamailio is not installed: apt-get install kamailio\n');
  print('Tandem', await setUpByTandem(), direct);
  await hold();
} finally {
  await callee.stop();
  await rm(folder, { recursive: true, force: true });
}

function print(name: string, { callsPerSecond, answeredMs, failed }: Setup, reference: Setup): void {
  const ratio = callsPerSecond / reference.callsPerSecond;
  const delay = (percent: number) => percentile(answeredMs, percent).toFixed(1).padStart(6);
  process.stdout.write(
    `${name.padEnd(18)} ${callsPerSecond.toFixed(0).padStart(6)} calls/s, ${ratio.toFixed(2)} of sipp; answered after p50 ${delay(50)} ms, p99 ${delay(99)} ms; ${failed} failed\n`,
  );
}

function percentile(sorted: readonly number[], percent: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? Number.NaN;
}

/** The built-in caller of sipp: INVITE, ACK, BYE. */
async function setUpBySipp(name: string, port: number): Promise<Setup> {
  const own = await mkdtemp(join(folder, 'caller-'));
  const startedMs = performance.now();
  const caller = runPeer('sipp', {
    cwd: own,
    args: [
      ...[`${HOST}:${port}`, '-sn', 'uac', '-i', HOST, '-p', String(await freePorts(2)), '-nostdin', '-d', '0'],
      ...['-m', String(CALLS), '-l', String(CONCURRENCY), '-r', '5000', '-trace_rtt', '-rtt_freq', '1'],
      ...['-timeout', '120', '-timeout_error'],
    ],
  });
  const code = await caller.exited;
  const elapsedMs = performance.now() - startedMs;
  // 1: some calls failed, because datagrams are lost at full load.
  if (code !== 0 && code !== 1) throw new Error(`${name}: sipp ended with ${code}: ${caller.output()}`);
  const failed = Number(/Failed call\s*\|[^|]*\|\s*(\d+)/.exec(caller.output())?.[1] ?? 0);
  const file = (await readdir(own)).find((each) => each.endsWith('_rtt.csv'));
  const lines = file === undefined ? [] : (await readFile(join(own, file), 'utf8')).trim().split('\n').slice(1);
  const answeredMs = lines.map((line) => Number(line.split(';')[1])).sort((a, b) => a - b);
  return { callsPerSecond: (CALLS * 1000) / elapsedMs, answeredMs, failed };
}

/** A proxy that stays in the path and relays everything to the callee. */
async function withKamailio(act: (port: number) => Promise<void>): Promise<void> {
  const port = await freePorts(2);
  const config = join(folder, 'kamailio.cfg');
  const modules = ['tm', 'sl', 'rr', 'pv', 'siputils', 'textops'].map((name) => `loadmodule "${name}.so"`).join('\n');
  await writeFile(
    config,
    `#!KAMAILIO
log_stderror=yes
# Two could send a BYE before the ACK that came first.
children=1
auto_aliases=no
listen=udp:${HOST}:${port}
${modules}
request_route {
  # The built-in caller of sipp sends no Route headers.
  if (!has_totag()) { record_route(); } else if (loose_route()) { t_relay(); exit; }
  $du = "sip:${HOST}:${calleePort}";
  t_relay();
}
`,
  );
  const args = ['-DD', '-E', '-f', config, '-w', folder, '-Y', folder, '-P', join(folder, 'kamailio.pid')];
  const kamailio: RunningPeer = runPeer('kamailio', { cwd: folder, args });
  try {
    await untilListening(port, 'udp', kamailio);
    await act(port);
  } finally {
    kamailio.child.kill('SIGTERM');
    await kamailio.exited;
  }
}

async function openTandem() {
  const server = await startEmbeddedSipServer({
    ...{ sipHost: HOST, sipPort: 0, transports: ['udp', 'tcp'], secret: SECRET },
    signal: new AbortController().signal,
  });
  const gateway = await createDrachtioGateway({ host: server.controlHost, port: server.controlPort, secret: SECRET });
  return {
    gateway,
    async close() {
      await gateway.close();
      await server.close();
    },
  };
}

type Tandem = Awaited<ReturnType<typeof openTandem>>;

/** Resolves with the leg when it is answered; `over` resolves when it ends. Rejects if the call is rejected. */
function dial({ gateway }: Tandem): Promise<{ leg: LegDialog; over: Promise<string> }> {
  return new Promise((resolve, reject) => {
    const over = Promise.withResolvers<string>();
    const leg = gateway.dial({
      trunk: {
        ...{ sipUri: `sip:${HOST}:${calleePort}`, transport: 'udp', username: null, password: null },
        ...{ codecs: ['PCMU', 'PCMA'], mediaEncryption: 'none' },
      },
      callerId: '+918000000001',
      calledNumber: '+919876543210',
      localMedia: { host: HOST, rtpPort: 40_000 },
      callId: 'call-1',
      leg: 'agent',
      signal: new AbortController().signal,
      onEvent: (event) => {
        if (event.type === 'leg.answered') resolve({ leg, over: over.promise });
        else if (event.type === 'leg.ended') over.resolve(event.by);
        else if (event.type !== 'leg.ringing') reject(new Error(`a leg ended with ${JSON.stringify(event)}`));
      },
    });
  });
}

async function setUpByTandem(): Promise<Setup> {
  const tandem = await openTandem();
  const answeredMs: number[] = [];
  let left = CALLS;
  const startedMs = performance.now();
  const caller = async () => {
    while (left > 0) {
      left -= 1;
      const dialedMs = performance.now();
      const { leg, over } = await dial(tandem);
      answeredMs.push(performance.now() - dialedMs);
      leg.hangup('NORMAL_CLEARING');
      await over;
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, caller));
  const elapsedMs = performance.now() - startedMs;
  await tandem.close();
  return { callsPerSecond: (CALLS * 1000) / elapsedMs, answeredMs: answeredMs.sort((a, b) => a - b), failed: 0 };
}

async function hold(): Promise<void> {
  const tandem = await openTandem();
  const before = process.memoryUsage.rss();
  let lost = 0;
  const held: Awaited<ReturnType<typeof dial>>[] = [];
  for (let at = 0; at < HELD; at += CONCURRENCY) {
    held.push(...(await Promise.all(Array.from({ length: Math.min(CONCURRENCY, HELD - at) }, () => dial(tandem)))));
  }
  for (const { over } of held) {
    void over.then((by) => {
      if (by === 'peer') lost += 1;
    });
  }
  const perCall = (process.memoryUsage.rss() - before) / HELD;
  await new Promise((resolve) => setTimeout(resolve, HELD_MS));
  for (const { leg } of held) leg.hangup('NORMAL_CLEARING');
  await Promise.all(held.map(({ over }) => over));
  await tandem.close();
  process.stdout.write(
    `${HELD} calls held for ${HELD_MS / 1000} s: ${lost} lost, ${(perCall / 1024).toFixed(0)} kB a call (gateway and SIP server)\n`,
  );
}
