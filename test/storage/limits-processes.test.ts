import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { untilTruthy } from '../eventually.ts';
import type { LimitsAnswer, LimitsCommand } from './limits-process.ts';
import { openTestNamespace, REDIS_URL, redisIsReachable } from './test-redis.ts';

interface LimitsProcess {
  child: ChildProcess;
  ask(command: LimitsCommand): Promise<LimitsAnswer>;
}

async function startProcess(settings: object): Promise<LimitsProcess> {
  const options = { redisUrl: REDIS_URL, ...settings };
  const child = fork(join(import.meta.dirname, 'limits-process.ts'), [JSON.stringify(options)]);
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child, 'message');
  return {
    child,
    async ask(command) {
      child.send(command);
      const [answer] = (await once(child, 'message')) as [LimitsAnswer];
      return answer;
    },
  };
}

const ACQUIRE = { acquire: { userId: 7, kind: 'stt' } } as const;
const GRANTED = { granted: true };
const REFUSED = { refused: 'STT_CONCURRENCY_LIMIT' };

describe.skipIf(!(await redisIsReachable()))('two processes with one Redis', () => {
  it('share the slots of a user, and recover those of a killed process', async () => {
    await using namespace = openTestNamespace();
    const settings = { namespace: namespace.name, leaseMs: 1_500 };
    const [first, second] = await Promise.all([startProcess(settings), startProcess(settings)]);
    for (let slot = 0; slot < 5; slot += 1) expect(await first.ask(ACQUIRE)).toEqual(GRANTED);
    for (let slot = 0; slot < 3; slot += 1) expect(await second.ask(ACQUIRE)).toEqual(GRANTED);
    for (const { ask } of [first, second]) expect(await ask(ACQUIRE)).toEqual(REFUSED);
    await first.ask({ releaseOne: true });
    expect(await second.ask(ACQUIRE)).toEqual(GRANTED);
    expect(await second.ask(ACQUIRE)).toEqual(REFUSED);

    first.child.kill('SIGKILL');
    await once(first.child, 'exit');
    for (let slot = 0; slot < 4; slot += 1) {
      await untilTruthy(async () => 'granted' in (await second.ask(ACQUIRE)), 'a slot of the killed process is free');
    }
    // The second process lived on and renewed its own.
    expect(await second.ask(ACQUIRE)).toEqual(REFUSED);
  });

  it('share failed logins by network, spare other networks, and survive a restart', async () => {
    await using namespace = openTestNamespace();
    const settings = { namespace: namespace.name, logins: { failuresPerEmail: 4, failuresPerNetwork: 6 } };
    const [first, second] = await Promise.all([startProcess(settings), startProcess(settings)]);
    const guess = { login: { email: 'Ada@example.com', address: '192.0.2.1' } };
    const throttled = { refused: 'LOGIN_THROTTLED' };
    for (const { ask } of [first, second, first, second]) expect(await ask(guess)).toEqual(GRANTED);
    for (const { ask } of [first, second]) expect(await ask(guess)).toEqual(throttled);
    const owner = { login: { email: 'ada@example.com', address: '198.51.100.7' }, forgive: true } as const;
    for (const { ask } of [first, second]) expect(await ask(owner)).toEqual(GRANTED);
    // The network has reached its own limit.
    const other = { login: { email: 'bob@example.com', address: '192.0.2.1' } };
    expect(await first.ask(other)).toEqual(throttled);
    first.child.kill('SIGKILL');
    await once(first.child, 'exit');
    const third = await startProcess(settings);
    expect(await third.ask(guess)).toEqual(throttled);
  });

  it('count one window for interleaved requests', async () => {
    await using namespace = openTestNamespace();
    const settings = { namespace: namespace.name, anonymousPerMinute: 10 };
    const processes = await Promise.all([startProcess(settings), startProcess(settings)]);
    const answers: LimitsAnswer[] = [];
    await Promise.all(
      processes.map(async ({ ask }) => {
        for (let count = 0; count < 10; count += 1) answers.push(await ask({ address: '192.0.2.1' }));
      }),
    );
    expect(answers.filter((answer) => 'exceeded' in answer && !answer.exceeded)).toHaveLength(10);
  });
});
