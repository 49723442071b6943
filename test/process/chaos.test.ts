import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { ROOT } from '../packaging/repository.ts';
import { inheritedEnvironment } from './server-process.ts';

it('npm run chaos passes two rounds: a killed node, and a node cut off from its SIP server', async () => {
  const args = [
    ...['--rounds', '2', '--seed', '6', '--nodes', '2', '--calls', '4', '--chats', '0', '--seconds', '2'],
    ...['--fault', 'kill', '--fault', 'cut a node from the SIP server'],
  ];
  const { VITEST_POOL_ID, TMPDIR } = process.env;
  const child = spawn(process.execPath, [join(ROOT, 'bench/chaos.ts'), ...args], {
    env: { ...inheritedEnvironment(), VITEST_POOL_ID, TMPDIR },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const exited = once(child, 'exit');
  onTestFinished(async () => {
    child.kill('SIGTERM');
    await exited;
  });
  const [printed, failed, [code]] = await Promise.all([text(child.stdout), text(child.stderr), exited]);
  expect({ code, printed, failed }, printed + failed).toMatchObject({ code: 0, failed: '' });
  for (const fault of ['kill', 'cut a node from the SIP server']) expect(printed).toContain(`1 x ${fault}`);
}, 300_000);
