import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { ROOT } from '../root.ts';
import { inheritedEnvironment } from './server-process.ts';

export interface SipServerProcess {
  child: ChildProcess;
  sipPort: number;
  controlPort: number;
  /** Kills it, like a crash. Idempotent. */
  kill(): Promise<void>;
}

/** Starts a substitute for drachtio-server, which survives servers that use it. */
export async function startSipServer(options: {
  secret: string;
  /** Default: free ports. */
  ports?: { sipPort: number; controlPort: number };
}): Promise<SipServerProcess> {
  const { secret, ports = { sipPort: 0, controlPort: 0 } } = options;
  const child = spawn(process.execPath, [join(ROOT, 'test/process/sip-server-process.ts')], {
    env: {
      ...{ ...inheritedEnvironment(), DRACHTIO_SECRET: secret },
      ...{ SIP_PORT: String(ports.sipPort), CONTROL_PORT: String(ports.controlPort) },
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const exited = once(child, 'exit');
  const [line] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
  return {
    child,
    ...(JSON.parse(line) as { sipPort: number; controlPort: number }),
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}
