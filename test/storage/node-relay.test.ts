import { randomUUID } from 'node:crypto';
import { describe, expect, it, onTestFinished } from 'vitest';
import { parseExactJson } from '../../storage/exact-json.ts';
import { MOST_UNSENT, openNodeRelay, RelayFullError } from '../../storage/nodes/node-relay.ts';
import { createTestLogger } from '../actors/fakes.ts';
import { eventually } from '../eventually.ts';
import { onEveryServer } from './every-server.ts';
import { openGate } from './gate.ts';
import { openTestNamespace, REDIS_URL, redisIsReachable } from './test-redis.ts';

type Open = (boot: string) => ReturnType<typeof openNodeRelay>;

/** Conformance suite of relay backends. */
function relaySuite(openOn: () => Promise<Open>): void {
  async function openTwo() {
    const open = await openOn();
    const relays = await Promise.all([open(randomUUID()), open(randomUUID())]);
    onTestFinished(async () => void (await Promise.all(relays.map((relay) => relay.close()))));
    return relays as [Awaited<ReturnType<Open>>, Awaited<ReturnType<Open>>];
  }

  it('delivers a message to subscribed nodes with unchanged numbers', async () => {
    const [one, two] = await openTwo();
    const received: unknown[] = [];
    await two.subscribe('nodes.two.commands', (message) => void received.push(message));
    await two.subscribe('nodes.other.commands', () => void received.push('wrong topic'));
    const message = parseExactJson('{"amount": 1.10, "id": 12345678901234567890, "name": "Żółć"}');
    expect(await one.publish('nodes.two.commands', message)).toBe(1);
    await eventually(() => expect(received).toHaveLength(1));
    expect(JSON.stringify(received[0])).toBe('{"amount":1.10,"id":12345678901234567890,"name":"Żółć"}');
  });

  it('sends nothing after the last unsubscribe, and survives a listener that throws', async () => {
    const [one, two] = await openTwo();
    let calls = 0;
    const end = await two.subscribe('calls.call_1', () => {
      calls += 1;
      throw new Error('a defect of a listener');
    });
    await one.publish('calls.call_1', 1);
    await one.publish('calls.call_1', 2);
    await eventually(() => expect(calls).toBe(2));
    await end();
    expect(await one.publish('calls.call_1', 3)).toBe(0);
  });
}

onEveryServer('node relay', (database) => {
  relaySuite(async () => {
    const { url: databaseUrl } = database();
    return (boot) => openNodeRelay({ databaseUrl, redisUrl: null, boot, logger: createTestLogger() });
  });
});

describe.skipIf(!(await redisIsReachable()))('node relay on Redis', () => {
  relaySuite(async () => {
    const namespace = openTestNamespace();
    onTestFinished(() => namespace[Symbol.asyncDispose]());
    return (boot) =>
      openNodeRelay({
        databaseUrl: 'unused',
        redisUrl: REDIS_URL,
        ...{ boot, namespace: namespace.name, logger: createTestLogger() },
      });
  });

  it('keeps a limited number of messages while Redis is away, sends them afterwards, and logs dropped ones once', async () => {
    await using namespace = openTestNamespace();
    const gate = await openGate(REDIS_URL);
    const logger = createTestLogger();
    const relay = await openNodeRelay({
      databaseUrl: 'unused',
      redisUrl: gate.url,
      ...{ boot: randomUUID(), namespace: namespace.name, logger },
    });
    await gate.shut();
    const kept = Array.from({ length: MOST_UNSENT }, (_, message) => relay.publish('calls.call_1', message));
    await expect(relay.publish('calls.call_1', 'one too many')).rejects.toThrow('too many messages');
    await expect(relay.publish('calls.call_1', 'another')).rejects.toThrow(RelayFullError);
    await gate.open();
    expect(new Set(await Promise.all(kept))).toEqual(new Set([0]));
    expect(await relay.publish('calls.call_1', 'after')).toBe(0);
    expect(logger.lines.filter(({ message }) => message.includes('dropped'))).toEqual([
      expect.objectContaining({ fields: { unsent: MOST_UNSENT } }),
      expect.objectContaining({ fields: { dropped: 2 } }),
    ]);
    await relay.close();
    await gate.shut();
  });
});
