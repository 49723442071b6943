import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { type Fault, faultsOf } from './chaos/faults.ts';
import { brokenCallbacks, brokenInvariants, unsettled } from './chaos/invariants.ts';
import { type Random, randomFrom } from './chaos/random.ts';
import { CALLBACK_SECRET, openTown, post, type Town } from './chaos/town.ts';

/**
 * Server processes on one Postgres and one Redis, under load, with a random fault in each round. When everything has
 * settled again, it checks the database and what the phones and the receiver of callbacks saw. Prints the seed of each
 * round and what broke; exits with 1 if anything did. `--seed` repeats the faults and moments of a run. Everything is on
 * loopback and ends with the program.
 */

const { values: flags } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    nodes: { type: 'string', default: '3' },
    calls: { type: 'string', default: '10' },
    'postgres-away': { type: 'string', default: '5' },
    fault: { type: 'string' },
    minutes: { type: 'string', default: '600' },
  },
});
const CALLS = Number(flags.calls);
const SETTLED_WITHIN_MS = 60_000;
const CALLBACKS_WITHIN_MS = 120_000;
const deadline = performance.now() + Number(flags.minutes) * 60_000;

await using town = await openTown({ nodes: Number(flags.nodes) });
const faults = faultsOf({ postgresAwayMs: Number(flags['postgres-away']) * 1_000 })
  .filter(({ name }) => flags.fault === undefined || name === flags.fault)
  .filter((fault) => {
    const reason = fault.unavailable(town);
    if (reason !== null) console.log(`left out: ${fault.name} (${reason})`);
    return reason === null;
  });
let failures = 0;
let rounds = 0;
for (; rounds < Number(flags.rounds) && performance.now() < deadline; rounds += 1) {
  const seed = Number(flags.seed) + rounds;
  const random = randomFrom(seed);
  const fault = random.pick(faults);
  const startedAt = performance.now();
  const broken = await playRound({ fault, random, round: `round-${seed}-${Date.now()}` });
  const seconds = ((performance.now() - startedAt) / 1_000).toFixed(0);
  console.log(`seed ${seed}: ${fault.name}, ${seconds} s: ${broken.length === 0 ? 'holds' : 'BROKEN'}`);
  for (const line of broken) console.log(`  ${line}`);
  failures += broken.length;
}
const undelivered = await untilNone(() => brokenCallbacks(town), CALLBACKS_WITHIN_MS);
for (const line of undelivered) console.log(`  ${line}`);
failures += undelivered.length;
const [{ count }] = (await town.sql`select count(*)::int from calls`) as unknown as [{ count: number }];
console.log(`${rounds} rounds, ${count} calls, ${town.receiver.received.length} callbacks, ${failures} failures`);
process.exitCode = failures > 0 ? 1 : 0;

async function playRound({ fault, random, round }: { fault: Fault; random: Random; round: string }): Promise<string[]> {
  // The limit of placements a minute is not what is tested here.
  await town.sql`update calls set created_at = created_at - interval '1 hour' where created_at > now() - interval '10 minutes'`;
  const broken: string[] = [];
  const before = town.nodes.map(({ server }) => server);
  const load = Promise.all(
    Array.from({ length: CALLS }, async (_, index) => {
      await pause(random.between(0, 5_000));
      const status = await place(town, random, `${round}-${index}`);
      if (status === 500) broken.push(`a placement was answered with ${status}`);
    }),
  );
  await pause(random.between(500, 7_000));
  await fault.provoke(town, random);
  await pause(random.between(0, 3_000));
  for (const node of town.nodes) if (!node.isUp) await node.start();
  await load;
  // Talks and phones that ring go on until they are hung up.
  const rest = await untilNone(async () => {
    await hangUpAll(town);
    return await unsettled(town);
  }, SETTLED_WITHIN_MS);
  if (rest.length > 0) broken.push(...rest.map((line) => `after ${SETTLED_WITHIN_MS / 1_000} s, ${line}`));
  for (const node of town.nodes) if (!node.isUp) broken.push(`${node.name} ended by itself: ${lastWords(node)}`);
  const nodesWereLost = town.nodes.some(({ server }, index) => server !== before[index]);
  const found = await untilNone(() => brokenInvariants(town, { round, nodesWereLost }), 5_000);
  return [...broken, ...found];
}

/** Places a call as clients are asked to: a refused connection, a broken one and a 503 are repeated under one reference. */
async function place(
  { nodes, agent, customers, receiver }: Town,
  random: Random,
  referenceId: string,
): Promise<number> {
  const body = {
    agent_number: agent.user,
    customer_number: random.pick(customers).user,
    reference_id: referenceId,
    record: random.next() < 0.5,
    callback_url: receiver.url,
    callback_secret: CALLBACK_SECRET,
  };
  for (let tries = 0; tries < 60; tries += 1) {
    const url = random.pick(nodes).url;
    const status = await post(url, '/dialer/click2call', body).then(
      (answer) => answer.status,
      () => 0,
    );
    if (status !== 0 && status !== 503 && status !== 429) return status;
    await pause(500);
  }
  return 0;
}

async function hangUpAll({ sql, nodes }: Town): Promise<void> {
  const live = await sql<{ callId: string }[]>`
    select call_id from calls where state in ('pending', 'initiated', 'bridged') limit 20`;
  const node = nodes.find(({ isUp }) => isUp);
  if (node === undefined) return;
  await Promise.all(live.map(({ callId }) => post(node.url, `/dialer/click2call/${callId}/hangup`).catch(() => null)));
}

/** Looks again until nothing is left or the time is up; returns what is left. */
async function untilNone(look: () => Promise<string[]>, withinMs: number): Promise<string[]> {
  const until = performance.now() + withinMs;
  for (;;) {
    const left = await look();
    if (left.length === 0 || performance.now() > until) return left;
    await pause(500);
  }
}

function lastWords({ server }: Town['nodes'][number]): string {
  return server.output().trim().split('\n').slice(-3).join(' | ').slice(0, 600);
}
