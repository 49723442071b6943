import { statfsSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { ChaosNode } from './node.ts';
import type { Random } from './random.ts';
import type { Town } from './town.ts';

export interface Fault {
  name: string;
  /** The SIP server dies with its dialogs, so ringing phones are not cancelled. */
  endsSipServer?: true;
  /** Why the fault cannot be provoked here, or null. */
  unavailable(town: Town): string | null;
  /** Provokes the fault and ends it. The caller restarts servers that died. */
  provoke(town: Town, random: Random): Promise<void>;
}

/** Longer than the lease of a node. */
const FREEZE_MS = 12_000;
/** Live calls may go on for half a minute. */
const STOPPED_WITHIN_MS = 90_000;
/** Longer than the pause between two connection attempts to Postgres. */
const RECONNECTED_WITHIN_MS = 10_000;

const up = ({ nodes }: Town) => nodes.filter(({ isUp }) => isUp);
const needsRedis = ({ redis }: Town) => (redis === null ? 'redis-server is not installed' : null);
const needsSip = ({ sip }: Town) => (sip === null ? 'the nodes have their own SIP servers' : null);
const needsClock = ({ nodes }: Town) => (nodes[0]!.setClock === null ? 'libfaketime is not installed' : null);

/** @param postgresAwayMs how long Postgres is stopped; null: random, up to half a minute */
export function faultsOf({ postgresAwayMs }: { postgresAwayMs: number | null }): Fault[] {
  return [
    {
      name: 'kill',
      unavailable: () => null,
      async provoke(town, random) {
        await kill(random.pick(up(town)));
      },
    },
    {
      name: 'kill two',
      unavailable: ({ nodes }) => (nodes.length < 3 ? 'needs three nodes' : null),
      async provoke(town, random) {
        await kill(random.pick(up(town)));
        // The second node dies while it may be settling the first one's calls.
        await pause(random.between(0, 11_000));
        await kill(random.pick(up(town)));
      },
    },
    {
      name: 'kill two at once',
      unavailable: ({ nodes }) => (nodes.length < 3 ? 'needs three nodes' : null),
      async provoke(town, random) {
        const spared = random.pick(up(town));
        await Promise.all(up(town).map((node) => (node === spared ? null : kill(node))));
      },
    },
    {
      name: 'kill all',
      unavailable: () => null,
      async provoke(town) {
        await Promise.all(up(town).map(kill));
      },
    },
    {
      name: 'kill and restart at once',
      unavailable: () => null,
      async provoke(town, random) {
        const node = random.pick(up(town));
        await kill(node);
        await node.start();
      },
    },
    {
      name: 'freeze',
      unavailable: () => null,
      async provoke(town, random) {
        const node = random.pick(up(town));
        const { child } = node.server;
        node.isUp = false;
        child.kill('SIGSTOP');
        await pause(FREEZE_MS + random.between(0, 4_000));
        child.kill('SIGCONT');
        await node.server.exited;
      },
    },
    {
      name: 'freeze for less than the lease',
      unavailable: () => null,
      async provoke(town, random) {
        const { child } = random.pick(up(town)).server;
        child.kill('SIGSTOP');
        await pause(random.between(500, 4_000));
        child.kill('SIGCONT');
      },
    },
    {
      name: 'cut a node from Postgres',
      unavailable: () => null,
      async provoke(town, random) {
        const unblock = random.pick(up(town)).postgres.block();
        await pause(random.pick([0, 500, 3_000]));
        unblock();
      },
    },
    {
      name: 'cut a node from Postgres for longer than the lease',
      unavailable: () => null,
      async provoke(town, random) {
        const node = random.pick(up(town));
        const unblock = node.postgres.block();
        await pause(FREEZE_MS);
        unblock();
        // The node exits once it learns that another node has taken over; otherwise it goes on.
        await Promise.race([node.server.exited, pause(RECONNECTED_WITHIN_MS)]);
      },
    },
    {
      name: 'terminate all backends',
      unavailable: () => null,
      async provoke({ sql }) {
        await sql`
          select pg_terminate_backend(pid) from pg_stat_activity
          where datname = current_database() and usename = current_user and pid <> pg_backend_pid()`.catch(() => {});
      },
    },
    {
      name: 'stop Postgres',
      unavailable: () => null,
      async provoke({ postgres }, random) {
        const awayMs = random.pick([1_000, 10_000, 30_000]);
        await postgres.stop();
        await pause(postgresAwayMs ?? awayMs);
        await postgres.start();
      },
    },
    {
      name: 'kill Postgres',
      unavailable: () => null,
      async provoke({ postgres }) {
        await postgres.kill();
        await postgres.start();
      },
    },
    {
      name: 'cut a node from the SIP server',
      unavailable: needsSip,
      async provoke(town, random) {
        const unblock = random.pick(up(town)).sip!.block();
        await pause(random.pick([0, 1_000, 6_000]));
        unblock();
      },
    },
    {
      name: 'kill the SIP server',
      endsSipServer: true,
      unavailable: needsSip,
      async provoke({ sip }, random) {
        await sip!.kill();
        await pause(random.between(0, 5_000));
        await sip!.start();
      },
    },
    {
      name: 'freeze the SIP server',
      unavailable: needsSip,
      async provoke({ sip }, random) {
        sip!.freeze();
        await pause(random.between(1_000, 16_000));
        sip!.thaw();
      },
    },
    {
      name: 'kill a node while it is cut from the SIP server',
      unavailable: needsSip,
      async provoke(town, random) {
        const node = random.pick(up(town));
        const unblock = node.sip!.block();
        await pause(random.between(0, 3_000));
        await kill(node);
        unblock();
      },
    },
    {
      name: 'step a clock',
      unavailable: needsClock,
      async provoke(town, random) {
        await stepClock(random.pick(up(town)), random);
      },
    },
    {
      name: 'step a clock and kill the node',
      unavailable: needsClock,
      async provoke(town, random) {
        const node = random.pick(up(town));
        await stepClock(node, random);
        await kill(node);
      },
    },
    {
      name: 'cut a node from Redis',
      unavailable: needsRedis,
      async provoke(town, random) {
        const unblock = random.pick(up(town)).redis!.block();
        await pause(random.pick([0, 1_000, 6_000]));
        unblock();
      },
    },
    {
      name: 'flush Redis',
      unavailable: needsRedis,
      async provoke({ redis }) {
        redis!.flush();
      },
    },
    {
      name: 'kill Redis',
      unavailable: needsRedis,
      async provoke({ redis }, random) {
        await redis!.kill();
        await pause(random.between(500, 8_000));
        await redis!.start();
      },
    },
    {
      name: 'stop a node while Redis is away',
      unavailable: needsRedis,
      async provoke(town, random) {
        const node = random.pick(up(town));
        await town.redis!.kill();
        node.isUp = false;
        node.server.child.kill('SIGTERM');
        const stopped = await Promise.race([node.server.exited, pause(STOPPED_WITHIN_MS)]);
        if (stopped === undefined) throw new Error(`${node.name} did not stop`);
        await town.redis!.start();
      },
    },
    {
      name: 'kill a node while Redis is away',
      unavailable: needsRedis,
      async provoke(town, random) {
        await town.redis!.kill();
        await kill(random.pick(up(town)));
        await pause(13_000);
        await town.redis!.start();
      },
    },
    {
      name: 'disk of recordings full',
      unavailable: ({ nodes }) => (nodes[0]!.hasSmallDisk ? null : 'mounting a small disk is not permitted'),
      async provoke(town, random) {
        const { recordingsDir } = random.pick(up(town));
        const filler = join(recordingsDir, 'filler');
        const { bavail, bsize } = statfsSync(recordingsDir);
        await writeFile(filler, Buffer.alloc(bavail * bsize)).catch(() => {});
        await pause(random.between(1_000, 4_000));
        await rm(filler, { force: true });
      },
    },
  ];
}

async function kill(node: ChaosNode): Promise<void> {
  node.isUp = false;
  node.server.child.kill('SIGKILL');
  await node.server.exited;
}

/** Sets the clock wrong and back, as by hand and then by NTP. */
async function stepClock(node: ChaosNode, random: Random): Promise<void> {
  await node.setClock!(random.pick([-3_600, -60, -5, 5, 60, 3_600]));
  await pause(random.between(2_000, 6_000));
  await node.setClock!(0);
  // The library reads the offset once a second.
  await pause(1_200);
}
