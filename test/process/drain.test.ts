import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, expect, it } from 'vitest';
import { startCallbackReceiver } from '../../bin/demo/callback-receiver.ts';
import { walletOf } from '../../storage/ledger.ts';
import { untilTruthy } from '../eventually.ts';
import { connectStt, startStt } from '../http/stt-client.ts';
import { startLoopbackCarrier } from '../softphone/loopback-carrier.ts';
import { startSoftphone } from '../softphone/softphone.ts';
import { createTestDatabase } from '../storage/test-database.ts';
import {
  API_KEY,
  clean,
  cleanUp,
  dataFolder,
  fund,
  type Ready,
  redisOfServers,
  startReady,
  untilServersKnowEachOther,
} from './ready-server.ts';

const SECRET = 'the-secret-of-the-drain-test';
const AGENT = '+919811111111';
const CUSTOMER = '+919822222222';

afterAll(cleanUp);

it('one of two servers drains under load: placements continue, calls finish, sessions end with 1012', async () => {
  const database = await createTestDatabase();
  clean.push(() => database.drop());
  const { sql } = database;
  const redis = await redisOfServers();
  const start = async (index: number): Promise<Ready> => {
    return await startReady(await dataFolder({ databaseUrl: database.url }), {
      TANDEM_SECRET_KEY: Buffer.alloc(32, 4).toString('base64'),
      ...redis,
      ...{ RTP_PORT_MIN: String(37_600 + index * 200), RTP_PORT_MAX: String(37_799 + index * 200) },
    });
  };
  const [drained, other] = await Promise.all([start(0), start(1)]);
  const agent = await startSoftphone({ name: 'agent', user: AGENT });
  const customer = await startSoftphone({ name: 'customer', user: CUSTOMER });
  const carrier = await startLoopbackCarrier({
    routes: new Map([agent, customer].map((phone) => [phone.user, phone.address])),
  });
  const receiver = await startCallbackReceiver(SECRET);
  clean.push(() => Promise.all([agent.stop(), customer.stop(), carrier.stop(), receiver.stop()]));
  const { api, workspaceId } = other;
  const trunk = { name: 'Loopback', sip_uri: carrier.sipUri, numbers: ['+911140000001'], channels: 50 };
  await api.post('/dialer/trunks', { ...trunk, price_per_minute_usd: 0.06 });
  await api.post('/dialer/numbers', { e164: '+911140000001' });
  await fund(sql, workspaceId);
  await untilServersKnowEachOther(sql, 2);

  const statuses = new Set<number | string>();
  /** Retries at another server after a 503 or an unreachable one, as clients should. */
  async function place(referenceId: string): Promise<string> {
    for (let tries = 0; tries < 60; tries += 1) {
      const { url } = [drained, other][tries % 2]!;
      const answer = await fetch(`${url}/dialer/click2call`, {
        method: 'POST',
        headers: { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' },
        body: JSON.stringify({
          ...{ agent_number: AGENT, customer_number: CUSTOMER, reference_id: referenceId },
          ...{ callback_url: receiver.url, callback_secret: SECRET },
        }),
      }).catch(() => null);
      statuses.add(answer?.status ?? 'no connection');
      const body = (await answer?.json().catch(() => null)) as { data?: { call: { call_id: string } } } | null;
      if (answer?.ok && body?.data) return body.data.call.call_id;
      await pause(100);
    }
    throw new Error(`${referenceId} was not placed: ${[...statuses]}`);
  }
  const nodeOf = async (callId: string) =>
    (await sql<{ ownerBoot: string }[]>`select owner_boot from calls where call_id = ${callId}`)[0]!.ownerBoot;
  const stateOf = async (callId: string) =>
    (await sql<{ state: string }[]>`select state from calls where call_id = ${callId}`)[0]!.state;

  const before: string[] = [];
  for (const reference of ['a', 'b', 'c', 'd']) before.push(await place(reference));
  for (const callId of before) await untilTruthy(async () => (await stateOf(callId)) === 'bridged', `${callId} talks`);
  expect(new Set(await Promise.all(before.map(nodeOf))).size).toBe(2);
  const session = connectStt(drained.url, { language: 'en' }, { protocols: ['token', API_KEY] });
  await startStt(session);
  drained.server.child.kill('SIGTERM');
  await drained.server.logged('draining: live calls may finish, a second signal ends them');
  const during: string[] = [];
  for (const reference of ['e', 'f', 'g', 'h']) during.push(await place(reference));
  const [row] = await sql<{ boot: string }[]>`select boot from nodes where is_draining`;
  expect(await Promise.all(during.map(nodeOf))).not.toContain(row!.boot);
  expect(await Promise.all(before.map(stateOf))).toEqual(['bridged', 'bridged', 'bridged', 'bridged']);
  for (const call of customer.calls) call.hangup();
  expect(await session.closed).toBe(1012);
  expect(session.types().slice(-3)).toEqual(['error', 'billing_summary', 'connection_closed']);
  expect(await drained.server.exited).toBe(0);
  const after = await place('i');
  await untilTruthy(async () => (await stateOf(after)) === 'bridged', 'the last call talks');
  for (const call of customer.calls) call.hangup();

  const all = [...before, ...during, after];
  for (const callId of all) await receiver.callbackOf(callId);
  expect(receiver.received).toHaveLength(all.length);
  const calls = await sql<{ state: string; error: string | null }[]>`select state, error from calls`;
  expect(calls).toEqual(all.map(() => ({ state: 'completed', error: null })));
  expect([...statuses].filter((status) => ![200, 201, 503, 'no connection'].includes(status))).toEqual([]);
  expect((await walletOf(sql, workspaceId)).heldNano).toBe(0n);
  await untilTruthy(async () => {
    const pending = await sql`select 1 from deliveries where status = 'pending'`;
    return pending.length === 0;
  }, 'all callbacks are recorded as delivered');
});
