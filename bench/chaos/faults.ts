import { statfsSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import type { Random } from './random.ts';
import type { ChaosNode, Town } from './town.ts';

export interface Fault {
  name: string;
  /** Null, or why it cannot be provoked here. */
  unavailable(town: Town): string | null;
  /** Provokes it, and ends it again. Servers that died are started by the caller. */
  provoke(town: Town, random: Random): Promise<void>;
}

/** Longer than the lease of a node. */
const FREEZE_MS = 12_000;

const up = ({ nodes }: Town) => nodes.filter(({ isUp }) => isUp);
const needsRedis = ({ redis }: Town) => (redis === null ? 'redis-server is not installed' : null);

export function faultsOf({ postgresAwayMs }: { postgresAwayMs: number }): Fault[] {
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
        // The second one dies while it may be settling what the first one left.
        await pause(random.between(0, 11_000));
        await kill(random.pick(up(town)));
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
        const unblock = random.pick(up(town)).postgres.block();
        await pause(FREEZE_MS);
        unblock();
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
      name: 'Postgres away',
      unavailable: () => null,
      async provoke({ nodes }) {
        const unblocks = nodes.map(({ postgres }) => postgres.block());
        await pause(postgresAwayMs);
        for (const unblock of unblocks) unblock();
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
