import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { freePorts } from '../free-ports.ts';
import { ROOT } from '../root.ts';
import { runPeer, untilListening } from './programs.ts';

const HOST = '127.0.0.1';
const START = join(ROOT, 'ops/kamailio/start.sh');

export interface Dispatcher {
  address: { host: string; port: number };
  output: () => string;
  /** kamailio flags of each SIP server: `A` active, `I` inactive, `T` tried; then `P` if pinged. */
  sipServers: () => Promise<Record<string, string>>;
  stop: () => Promise<void>;
}

/** Starts kamailio as in its image, with the configuration of `ops/kamailio`, in front of SIP servers `host:port`. */
export async function startDispatcher(sipServers: readonly string[]): Promise<Dispatcher> {
  const folder = await mkdtemp(join(tmpdir(), 'dispatcher-'));
  const port = await freePorts(2);
  const peer = runPeer('sh', { cwd: folder, args: [START], env: environmentOf({ folder, port, sipServers }) });
  await untilListening(port, 'udp', peer);
  await untilListening(port, 'tcp', peer);
  return {
    address: { host: HOST, port },
    output: peer.output,
    async sipServers() {
      const socket = `unix:${join(folder, 'kamailio_ctl')}`;
      const { stdout } = await promisify(execFile)('kamcmd', ['-s', socket, 'dispatcher.list']);
      const listed = stdout.matchAll(/URI: sip:([^;\s]+)\S*\s+FLAGS: (\w+)/g);
      return Object.fromEntries(Array.from(listed, ([, server = '', flags = '']) => [server, flags]));
    },
    async stop() {
      peer.child.kill('SIGTERM');
      await peer.exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** Runs the configuration check of kamailio; returns exit code and output. */
export async function checkDispatcher(environment: Record<string, string>) {
  const folder = await mkdtemp(join(tmpdir(), 'dispatcher-'));
  const peer = runPeer('sh', { cwd: folder, args: [START, '-c'], env: { ...environment, RUN_DIR: folder } });
  const exitCode = await peer.exited;
  await rm(folder, { recursive: true, force: true });
  return { exitCode, output: peer.output() };
}

function environmentOf({ folder, port, sipServers }: { folder: string; port: number; sipServers: readonly string[] }) {
  return {
    SIP_HOST: HOST,
    SIP_PORT: String(port),
    LISTEN_HOST: HOST,
    INNER_SIP_PORT: String(port + 1),
    SIP_SERVERS: sipServers.join(' '),
    RUN_DIR: folder,
  };
}
