import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, it, onTestFinished } from 'vitest';
import { isDeep } from '../properties.ts';
import { ROOT } from '../root.ts';
import { inheritedEnvironment } from './server-process.ts';

/** `takeover.test.ts` kills a node in every run. */
const FAULTS = ['cut a node from the SIP server', ...(isDeep ? ['kill'] : [])];

it(`npm run chaos passes a round for each fault (${FAULTS.join(', ')})`, async () => {
  const args = [
    ...['--rounds', String(FAULTS.length), '--seed', '6', '--nodes', '2', '--calls', '4', '--chats', '0'],
    ...['--seconds', '2', ...FAULTS.flatMap((fault) => ['--fault', fault])],
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
  for (const fault of FAULTS) expect(printed).toContain(`1 x ${fault}`);
}, 300_000);
