import { createServer } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { LimitSettings, Limits } from '../../storage/limits/limits.ts';
import { openLimits } from '../../storage/limits/open-limits.ts';
import { untilTruthy } from '../eventually.ts';
import { openGate } from './gate.ts';
import { openTestNamespace, REDIS_URL, redisIsReachable } from './test-redis.ts';

async function openUnder(redisUrl: string, settings: LimitSettings & { namespace?: string } = {}) {
  const logged: string[] = [];
  const log = (_fields: object, message: string) => void logged.push(message);
  const limits = await openLimits({ redisUrl, retryAfterMs: 0, logger: { info: log, warn: log }, ...settings });
  onTestFinished(() => limits.close());
  return { limits, logged };
}

const isTaken = (limits: Limits) =>
  limits.acquireSlot({ userId: 1, kind: 'stt' }).then(
    async (slot) => {
      await slot.release();
      return false;
    },
    () => true,
  );

describe.skipIf(!(await redisIsReachable()))('limits during a Redis outage', () => {
  it('count locally with one warning, and are shared again afterwards', async () => {
    await using namespace = openTestNamespace();
    const gate = await openGate(REDIS_URL);
    onTestFinished(() => gate.shut());
    const settings = { namespace: namespace.name, anonymousPerMinute: 2, concurrency: { stt: 1 }, leaseMs: 300 };
    const { limits, logged } = await openUnder(gate.url, settings);
    const { limits: elsewhere } = await openUnder(REDIS_URL, settings);
    await limits.consumeAddress('192.0.2.1');
    const taken = await elsewhere.acquireSlot({ userId: 1, kind: 'stt' });
    expect(await isTaken(limits)).toBe(true);

    await gate.shut();
    // Counted locally: without the counts of others, but still limited.
    for (const exceeded of [false, false, true]) {
      expect(await limits.consumeAddress('192.0.2.1')).toMatchObject({ limit: 2, exceeded });
    }
    const held = await limits.acquireSlot({ userId: 1, kind: 'stt' });
    expect(logged).toEqual(['Redis unreachable: limits apply to this process only']);

    await gate.open();
    await untilTruthy(async () => {
      await limits.peekAddress('192.0.2.1');
      return logged.length > 1;
    }, 'Redis is used again');
    expect(logged.slice(1)).toEqual(['Redis reachable again: limits are shared']);
    expect(await limits.consumeAddress('192.0.2.1')).toMatchObject({ remaining: 0, exceeded: false });
    await taken.release();
    await untilTruthy(() => isTaken(elsewhere), 'the slot of the outage is known to everybody');
    await held.release();
    expect(await isTaken(elsewhere)).toBe(false);
  });

  it('do not wait for an unresponsive server', async () => {
    await using namespace = openTestNamespace();
    const gate = await openGate(REDIS_URL);
    onTestFinished(() => gate.shut());
    const { limits, logged } = await openUnder(gate.url, { namespace: namespace.name });
    await limits.consumeAddress('192.0.2.1');
    gate.freeze();
    expect(await limits.consumeAddress('192.0.2.1')).toMatchObject({ exceeded: false });
    expect(logged).toHaveLength(1);
    const slot = await limits.acquireSlot({ userId: 1, kind: 'stt' });
    await slot.release();
  });
});

describe('limits without Redis', () => {
  it('open and count locally', async () => {
    const { limits, logged } = await openUnder('redis://127.0.0.1:1', { anonymousPerMinute: 1 });
    expect(await limits.consumeAddress('192.0.2.1')).toMatchObject({ exceeded: false });
    expect(await limits.consumeAddress('192.0.2.1')).toMatchObject({ exceeded: true });
    expect(logged).toEqual(['Redis unreachable: limits apply to this process only']);
  });

  it('open if the server never responds', async () => {
    const silent = createServer();
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void silent.close());
    const { port } = silent.address() as { port: number };
    const { limits } = await openUnder(`redis://127.0.0.1:${port}`);
    expect(await limits.consumeAddress('192.0.2.1')).toMatchObject({ exceeded: false });
  });
});
