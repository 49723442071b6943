import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, copyFile, cp, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { connect } from '../../storage/database.ts';
import { clusterUser, launchFor, run } from '../../storage/embedded/cluster-user.ts';
import { isAlive } from '../../storage/embedded/owner-lock.ts';
import { type EmbeddedPostgres, findBinaries, startEmbeddedPostgres } from '../../storage/embedded/postgres.ts';
import { runningDatabaseUrl } from '../../storage/embedded/running.ts';
import { eventually } from '../eventually.ts';

const isRoot = process.getuid?.() === 0;
/** Only root can mount a file system. */
const canMount = spawnSync('unshare', ['--mount', 'mount', '-t', 'tmpfs', 'tmpfs', tmpdir()]).status === 0;
const OWNER = path.join(import.meta.dirname, 'embedded-owner.ts');

describe('embedded Postgres', () => {
  let dataDir: string;
  const running: EmbeddedPostgres[] = [];
  const owners: ChildProcess[] = [];

  beforeEach(async () => {
    // mkdtemp creates mode 0700, which the server's user cannot enter when run as root.
    dataDir = await mkdtemp(path.join(tmpdir(), 'tandem-embedded-'));
  });
  afterEach(async () => {
    for (const owner of owners.splice(0)) owner.kill('SIGKILL');
    for (const server of running.splice(0)) await server.stop();
    await gone(await postmasterPid());
    await rm(dataDir, { recursive: true, force: true });
  });

  async function start(options: Partial<Parameters<typeof startEmbeddedPostgres>[0]> = {}) {
    const server = await startEmbeddedPostgres({ dataDir, ...options });
    running.push(server);
    return server;
  }

  async function startOwner(): Promise<{ owner: ChildProcess; url: string; error?: string }> {
    const owner = spawn(process.execPath, [OWNER, dataDir], { stdio: ['ignore', 'pipe', 'inherit'], detached: true });
    owners.push(owner);
    const [line] = await once(createInterface({ input: owner.stdout! }), 'line');
    return { owner, ...JSON.parse(line as string) };
  }

  async function postmasterPid(): Promise<number> {
    const text = await readFile(path.join(dataDir, 'postgres/postmaster.pid'), 'utf8').catch(() => '');
    return Number.parseInt(text, 10);
  }

  async function gone(pid: number): Promise<void> {
    if (Number.isNaN(pid)) return;
    await eventually(() => expect(isAlive(pid)).toBe(false));
  }

  it('initialises a cluster, preserves it across restarts and protects its password file', async () => {
    const first = await start();
    await query(first.url, 'create table kept as select 42 as answer');
    await first.stop();
    await first.stop();
    const second = await start();
    expect(await query(second.url, 'select answer from kept')).toEqual([{ answer: 42 }]);
    expect((await stat(path.join(dataDir, 'postgres.password'))).mode & 0o777).toBe(0o600);
    const wrong = new URL(second.url);
    wrong.password = 'wrong';
    await expect(query(wrong.href, 'select 1')).rejects.toThrow('password authentication failed');
    expect(await query(second.url, 'select rolsuper from pg_roles where rolname = current_user')).toEqual([
      { rolsuper: false },
    ]);
    expect(await readdir(dataDir)).not.toContainEqual(expect.stringMatching(/\.new-|\.owner\./));
  });

  it('starts with the given settings', async () => {
    const { url } = await start({ settings: { fsync: 'off', max_connections: 7 } });
    expect(await query(url, 'show max_connections')).toEqual([{ maxConnections: '7' }]);
    expect(await query(url, 'show fsync')).toEqual([{ fsync: 'off' }]);
  });

  it('rejects a second owner with a one-line error, in this process and others', async () => {
    await start();
    const refusal = /^The database in .* is in use by the running process \d+\.$/;
    await expect(startEmbeddedPostgres({ dataDir })).rejects.toMatchObject({
      code: 'STORAGE_UNAVAILABLE',
      message: expect.stringMatching(refusal),
    });
    expect((await startOwner()).error).toMatch(refusal);
  });

  it('rejects a second owner that does not see the process of the first, as from another container', async () => {
    await startOwner();
    await rm(path.join(dataDir, 'postgres.owner'));
    const refusal = /is in use by a process of another container/;
    await expect(startEmbeddedPostgres({ dataDir })).rejects.toThrow(refusal);
    // Two servers in containers often have one process id.
    await writeFile(path.join(dataDir, 'postgres.owner'), `${process.pid}\n`);
    await expect(startEmbeddedPostgres({ dataDir })).rejects.toThrow(refusal);
  });

  it('lets one of several concurrent starts have the directory', async () => {
    const attempts = await Promise.allSettled(Array.from({ length: 4 }, () => start()));
    expect(attempts.filter((attempt) => attempt.status === 'fulfilled')).toHaveLength(1);
  });

  it('ends when its owner is killed, and recovers committed data', async () => {
    const { owner, url } = await startOwner();
    await query(url, 'create table kept as select 42 as answer');
    const postmaster = await postmasterPid();
    owner.kill('SIGKILL');
    await gone(postmaster);
    const { url: next } = await start();
    expect(await query(next, 'select answer from kept')).toEqual([{ answer: 42 }]);
  });

  it('replaces a server that outlived its owner and its supervisor', async () => {
    const { owner, url } = await startOwner();
    await query(url, 'create table kept as select 42 as answer');
    const postmaster = await postmasterPid();
    process.kill(await parentOf(postmaster), 'SIGKILL');
    owner.kill('SIGKILL');
    await once(owner, 'exit');
    const { url: next } = await start();
    expect(await postmasterPid()).not.toBe(postmaster);
    expect(await query(next, 'select answer from kept')).toEqual([{ answer: 42 }]);
  });

  it('ignores Ctrl-C in the terminal of its owner', async () => {
    const { owner, url } = await startOwner();
    process.kill(-owner.pid!, 'SIGINT');
    expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }]);
    expect(isAlive(await postmasterPid())).toBe(true);
  });

  it('reports an unexpected end of the server, and can start again', async () => {
    const ended = Promise.withResolvers<string>();
    const server = await start({ onExit: ended.resolve });
    await query(server.url, 'create table kept as select 42 as answer');
    process.kill(await postmasterPid(), 'SIGKILL');
    expect(await ended.promise).toContain('ended');
    await server.stop();
    const { url } = await start();
    expect(await query(url, 'select answer from kept')).toEqual([{ answer: 42 }]);
  });

  it('stops when its signal aborts', async () => {
    const controller = new AbortController();
    await start({ signal: controller.signal });
    const postmaster = await postmasterPid();
    controller.abort();
    await gone(postmaster);
    expect(isAlive(postmaster)).toBe(false);
  });

  it('ignores a stale process id that another process reused', async () => {
    const first = await start();
    await first.stop();
    const cluster = path.join(dataDir, 'postgres');
    await writeFile(
      path.join(cluster, 'postmaster.pid'),
      `${process.pid}\n${cluster}\n1700000000\n5432\n\n127.0.0.1\n`,
    );
    await writeFile(
      path.join(dataDir, 'postgres.owner'),
      JSON.stringify({ pid: process.pid, startedAt: 'another boot/1', token: 'x' }),
    );
    await writeFile(path.join(cluster, '.s.PGSQL.5432.lock'), `${process.ppid}\n${cluster}\n1700000000\n5432\n`);
    const second = await start();
    expect(await query(second.url, 'select 1 as one')).toEqual([{ one: 1 }]);
  });

  it('listens on a Unix socket only, or on 127.0.0.1 if its folder can have none', async () => {
    const listening = "select current_setting('listen_addresses') as hosts";
    const first = await start();
    expect(await query(first.url, listening)).toEqual([{ hosts: '' }]);
    expect(await runningDatabaseUrl(dataDir)).toBe(first.url);
    const deep = path.join(dataDir, 'a folder, "named" with many letters'.padEnd(100, '.'));
    const second = await start({ dataDir: deep });
    expect(await query(second.url, listening)).toEqual([{ hosts: '127.0.0.1' }]);
    expect(await runningDatabaseUrl(deep)).toBe(second.url);
    const odd = await start({ dataDir: path.join(dataDir, 'a, "b"') });
    expect(await query(odd.url, listening)).toEqual([{ hosts: '' }]);
    await first.stop();
    await mkdir(path.join(dataDir, 'postgres/.s.PGSQL.5432'));
    expect(await query((await start()).url, listening)).toEqual([{ hosts: '127.0.0.1' }]);
  });

  it('starts over after a killed initialisation', async () => {
    await mkdir(path.join(dataDir, 'postgres.new-1234/cluster'), { recursive: true });
    await writeFile(path.join(dataDir, 'postgres.password'), 'of the first attempt');
    const { url } = await start();
    expect(await query(url, 'select 1 as one')).toEqual([{ one: 1 }]);
    expect(await readdir(dataDir)).not.toContain('postgres.new-1234');
  });

  it('rejects another major version and a missing password, and names the remedy', async () => {
    const server = await start();
    await server.stop();
    const versionFile = path.join(dataDir, 'postgres/PG_VERSION');
    const version = await readFile(versionFile, 'utf8');
    await writeFile(versionFile, '17\n');
    await expect(startEmbeddedPostgres({ dataDir })).rejects.toThrow(/was made by PostgreSQL 17 .* dump it/);
    await writeFile(versionFile, version);
    await rm(path.join(dataDir, 'postgres.password'));
    await expect(startEmbeddedPostgres({ dataDir })).rejects.toThrow(/postgres\.password is missing/);
  });

  it.skipIf(!canMount)(
    'names a full disk when it cannot initialise (requires root, to mount a small one)',
    async () => {
      const disk = path.join(dataDir, 'disk');
      await mkdir(disk);
      expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=10m', 'tmpfs', disk]).status).toBe(0);
      try {
        const starting = startEmbeddedPostgres({ dataDir: disk });
        await expect(starting).rejects.toThrow(/cannot be initialised: could not write .*: No space left on device$/);
      } finally {
        spawnSync('umount', [disk]);
      }
    },
  );

  it.skipIf(!canMount)(
    'says why it crashed when the disk has no room for its log (requires root, to mount a small one)',
    async () => {
      const disk = path.join(dataDir, 'disk');
      await mkdir(disk);
      expect(spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=60m', 'tmpfs', disk]).status).toBe(0);
      try {
        const server = await startEmbeddedPostgres({ dataDir: disk });
        const sql = connect({ url: server.url, max: 1 });
        try {
          expect(server.crash).toBeNull();
          // The log has segments of 16 MB, and the disk has room for one.
          await expect(sql`select pg_logical_emit_message(true, 'test', repeat('x', 60000000))`).rejects.toThrow();
        } finally {
          await sql.end({ timeout: 0 });
          await server.stop();
        }
        expect(server.crash).toMatch(/^could not write to file "pg_wal.*: No space left on device$/);
      } finally {
        spawnSync('umount', [disk]);
      }
    },
  );

  describe.skipIf(!isRoot)('started by root', () => {
    it('finds programs in a directory that only root may enter', async () => {
      const { initdb } = await findBinaries();
      const home = path.join(dataDir, 'checkout');
      await mkdir(home, { mode: 0o700 });
      await cp(path.dirname(path.dirname(initdb)), path.join(home, 'native'), {
        recursive: true,
        verbatimSymlinks: true,
      });
      const copied = path.join(home, 'native/bin/initdb');
      const user = await clusterUser(path.join(home, 'postgres'));
      const launch = await launchFor(user, { binary: copied, dataDir: home });
      const { code, output } = await run(launch, [copied, '--show', '-D', path.join(home, 'none')]);
      expect({ code, output }).toMatchObject({ code: 0, output: expect.not.stringContaining('not found') });
    });

    it('leaves no process of its user after stop', async () => {
      const server = await startEmbeddedPostgres({ dataDir });
      await server.stop();
      const { output } = await run({ prefix: [] }, ['ps', '-eo', 'args']);
      expect(output).not.toContain(dataDir);
    });

    it('runs as another user below directories that only root may enter', async () => {
      const home = path.join(dataDir, 'root-only');
      await mkdir(home, { mode: 0o700 });
      const program = path.join(home, 'id');
      await copyFile('/usr/bin/id', program);
      await chmod(program, 0o755);
      const user = await clusterUser(path.join(home, 'postgres'));
      const launch = await launchFor(user, { binary: program, dataDir: home });
      const { code, output } = await run(launch, [program, '-u']);
      expect({ code, uid: Number(output) }).toEqual({ code: 0, uid: user?.uid });
      expect(user?.uid).not.toBe(0);
    });

    it('keeps the owner of the cluster and runs as that user', async () => {
      await start();
      const cluster = path.join(dataDir, 'postgres');
      const { uid } = await stat(cluster);
      expect(uid).not.toBe(0);
      expect((await clusterUser(cluster))?.uid).toBe(uid);
      const status = await readFile(`/proc/${await postmasterPid()}/status`, 'utf8');
      expect(status).toMatch(new RegExp(`^Uid:\\s+${uid}\\s`, 'm'));
    });
  });
});

async function query(url: string, text: string): Promise<object[]> {
  const sql = connect({ url, max: 1 });
  try {
    return [...(await sql.unsafe(text))];
  } finally {
    await sql.end({ timeout: 1 });
  }
}

async function parentOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1]);
}
