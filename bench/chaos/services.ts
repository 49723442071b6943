import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { setTimeout as pause } from 'node:timers/promises';
import { startEmbeddedPostgres } from '../../storage/embedded/postgres.ts';
import { postgresPid } from '../../test/process/server-process.ts';
import { type SipServerProcess, startSipServer } from '../../test/process/sip-servers.ts';

/** A service shared by the nodes, which can be stopped and restarted. */
interface Service {
  /** Kills it like a crash. Idempotent. */
  kill(): Promise<void>;
  start(): Promise<void>;
}

export interface ChaosPostgres extends Service {
  readonly url: string;
  /** Stops it gracefully. */
  stop(): Promise<void>;
}

export interface ChaosRedis extends Service {
  readonly port: number;
  flush(): void;
}

/** Stands in for a drachtio-server. */
export interface ChaosSipServer extends Service {
  readonly port: number;
  readonly sipPort: number;
  readonly secret: string;
  freeze(): void;
  thaw(): void;
}

export async function openPostgres(dataDir: string): Promise<ChaosPostgres> {
  // Data need not survive a crash of the machine.
  const open = () => startEmbeddedPostgres({ dataDir, settings: { fsync: 'off' } });
  let running = await open();
  return {
    get url() {
      return running.url;
    },
    stop: () => running.stop(),
    async kill() {
      const pid = await postgresPid(dataDir);
      if (pid !== null) process.kill(pid, 'SIGKILL');
      await running.stop();
    },
    async start() {
      running = await open();
    },
  };
}

/** A Redis without persistence; null if it is not installed. */
export async function openRedis(): Promise<ChaosRedis | null> {
  if (spawnSync('redis-server', ['--version']).status !== 0) return null;
  const port = await freePort();
  let child: ChildProcess | null = null;
  const ask = (command: string) => spawnSync('redis-cli', ['-p', String(port), command], { encoding: 'utf8' }).stdout;
  const redis: ChaosRedis = {
    port,
    flush: () => void ask('flushall'),
    async kill() {
      if (child !== null) await end(child);
    },
    async start() {
      child = spawn('redis-server', ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', tmpdir()], {
        stdio: 'ignore',
      });
      for (let tries = 0; !ask('ping').includes('PONG'); tries += 1) {
        if (tries === 1_200) throw new Error('redis-server does not answer PING');
        await pause(50);
      }
    },
  };
  await redis.start();
  return redis;
}

export async function openSipServer(): Promise<ChaosSipServer> {
  const secret = 'the-secret-of-the-chaos-sip-server';
  let running: SipServerProcess = await startSipServer({ secret });
  const { sipPort, controlPort } = running;
  return {
    ...{ sipPort, secret, port: controlPort },
    kill: () => running.kill(),
    async start() {
      running = await startSipServer({ secret, ports: { sipPort, controlPort } });
    },
    freeze: () => void running.child.kill('SIGSTOP'),
    thaw: () => void running.child.kill('SIGCONT'),
  };
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await exited;
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as { port: number };
  await new Promise<void>((resolve) => void server.close(() => resolve()));
  return port;
}
