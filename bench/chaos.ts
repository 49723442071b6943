import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type Fault, faultsOf } from './chaos/faults.ts';
import {
  brokenCallbacks,
  brokenInvariants,
  brokenSlots,
  busyPhones,
  freePhones,
  unsettled,
} from './chaos/invariants.ts';
import { hangUpAll, playLoad } from './chaos/load.ts';
import { type Random, randomFrom } from './chaos/random.ts';
import { openTown, type Town } from './chaos/town.ts';

/**
 * Runs server processes on one Postgres, one Redis and one SIP server, under load, with a random fault in each round.
 * After each round it checks the database, the phones and the callback receiver. Prints each round's seed and the
 * violations; exits with 1 if there are any. `--seed` repeats the faults and times of a run. Everything runs on
 * loopback and ends with the program.
 */

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    nodes: { type: 'string', default: '3' },
    /** Calls per round, without those of sipp. */
    calls: { type: 'string', default: '10' },
    chats: { type: 'string', default: '3' },
    /** Duration of a round's load. */
    seconds: { type: 'string', default: '5' },
    /** `embedded`: each node has its own SIP server, which dies with it. */
    sip: { type: 'string', default: 'shared' },
    'postgres-away': { type: 'string' },
    /** Limits the faults to this one. May be repeated. */
    fault: { type: 'string', multiple: true },
    minutes: { type: 'string', default: '600' },
  },
});
const SETTLED_WITHIN_MS = 60_000;
/** A SIP server ends an answered call without ACK after 32 s. */
const FREE_WITHIN_MS = 45_000;
const CALLBACKS_WITHIN_MS = 120_000;
const SLOTS_WITHIN_MS = 60_000;
const startedAt = performance.now();
const deadline = startedAt + Number(flags.minutes) * 60_000;
const seconds = Number(flags.seconds);

await using town = await openTown({
  nodes: Number(flags.nodes),
  sip: flags.sip === 'embedded' ? 'embedded' : 'shared',
});
console.log(`${town.nodes.length} nodes are up after ${since(startedAt)} s`);
for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, async () => {
    await town[Symbol.asyncDispose]();
    process.exit(130);
  });
}
const postgresAwayMs = flags['postgres-away'] === undefined ? null : Number(flags['postgres-away']) * 1_000;
const all = faultsOf({ postgresAwayMs });
for (const name of flags.fault ?? []) {
  if (!all.some((fault) => fault.name === name)) throw new RangeError(`there is no fault named "${name}"`);
}
const faults = all
  .filter(({ name }) => flags.fault?.includes(name) ?? true)
  .filter((fault) => {
    const reason = fault.unavailable(town);
    if (reason !== null) console.log(`left out: ${fault.name} (${reason})`);
    return reason === null;
  });
const drawn = new Map<string, number>();
let failures = 0;
let rounds = 0;
for (; rounds < Number(flags.rounds) && performance.now() < deadline; rounds += 1) {
  const seed = Number(flags.seed) + rounds;
  const random = randomFrom(seed);
  const fault = random.pick(faults);
  drawn.set(fault.name, (drawn.get(fault.name) ?? 0) + 1);
  const roundAt = performance.now();
  const broken = await playRound({ fault, random, round: `round-${seed}-${Date.now()}` });
  console.log(`seed ${seed}: ${fault.name}, ${since(roundAt)} s: ${broken.length === 0 ? 'holds' : 'BROKEN'}`);
  report(broken);
}
report(await untilNone(() => brokenCallbacks(town), CALLBACKS_WITHIN_MS));
if (Number(flags.chats) > 0) report(await untilNone(() => brokenSlots(town), SLOTS_WITHIN_MS));
const [{ count }] = await town.sql<[{ count: number }]>`select count(*)::int from calls`;
for (const [name, times] of [...drawn].sort((a, b) => b[1] - a[1])) console.log(`${times} x ${name}`);
console.log(
  `${rounds} rounds in ${since(startedAt)} s, ${count} calls, ${town.receiver.received.length} callbacks, ${failures} failures`,
);
process.exitCode = failures > 0 ? 1 : 0;

async function playRound({ fault, random, round }: { fault: Fault; random: Random; round: string }): Promise<string[]> {
  const broken: string[] = [];
  const before = town.nodes.map(({ server }) => server);
  const [{ began }] = await town.sql<[{ began: Date }]>`select clock_timestamp() as began`;
  const load = playLoad(town, random, { round, calls: Number(flags.calls), chats: Number(flags.chats), seconds });
  await pause(random.between(0.1, 1.4) * seconds * 1_000);
  await fault.provoke(town, random).catch((error: Error) => broken.push(error.message));
  await pause(random.between(0, 0.6) * seconds * 1_000);
  for (const node of town.nodes) if (!node.isUp) await node.start();
  broken.push(...(await load));
  // Talks and ringing phones go on until they are hung up.
  const rest = await untilNone(async () => {
    broken.push(...(await startAgain()));
    await hangUpAll(town);
    return await unsettled(town);
  }, SETTLED_WITHIN_MS);
  if (rest.length > 0) broken.push(...rest.map((line) => `after ${SETTLED_WITHIN_MS / 1_000} s, ${line}`));
  const nodesWereLost = town.nodes.some(({ server }, index) => server !== before[index]);
  const sipServerWasLost = fault.endsSipServer ?? (town.sip === null && nodesWereLost);
  broken.push(...(await untilNone(() => brokenInvariants(town, { since: began }), 5_000)));
  broken.push(...(await untilNone(async () => busyPhones(town, { sipServerWasLost }), FREE_WITHIN_MS)));
  freePhones(town);
  return broken;
}

/** Restarts exited nodes, as a supervisor does. Losing the lease is the only valid reason for an exit. */
async function startAgain(): Promise<string[]> {
  const broken: string[] = [];
  for (const node of town.nodes.filter(({ isUp }) => !isUp)) {
    const isExpelled = node.server.output().includes('another node has taken over this one');
    if (isExpelled) console.log(`  ${node.name} lost its lease`);
    else broken.push(`${node.name} ended by itself: ${lastWords(node)}`);
    await node.start();
  }
  return broken;
}

/** Checks repeatedly until nothing is left or the time is up; returns the rest. */
async function untilNone(look: () => Promise<string[]>, withinMs: number): Promise<string[]> {
  const until = performance.now() + withinMs;
  for (;;) {
    const left = await look();
    if (left.length === 0 || performance.now() > until) return left;
    await pause(500);
  }
}

function report(broken: string[]): void {
  for (const line of broken) console.log(`  ${line}`);
  failures += broken.length;
}

function since(beganAtMs: number): string {
  return ((performance.now() - beganAtMs) / 1_000).toFixed(0);
}

function lastWords({ server }: Town['nodes'][number]): string {
  return server.output().trim().split('\n').slice(-3).join(' | ').slice(0, 600);
}
