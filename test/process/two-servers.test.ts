import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { topUp } from '../../storage/ledger.ts';
import { eventually } from '../eventually.ts';
import { startLoopbackCarrier } from '../softphone/loopback-carrier.ts';
import { startSoftphone } from '../softphone/softphone.ts';
import { createTestDatabase } from '../storage/test-database.ts';
import { createTestRedis, redisIsReachable } from '../storage/test-redis.ts';
import { startServerProcess } from './server-process.ts';

const API_KEY = 'sk_test_two_servers_0123456789abcdef';

interface Server {
  url: string;
  workspaceId: string;
  ask(method: string, path: string, body?: object): Promise<Response>;
}

async function startServer(env: Record<string, string>): Promise<Server> {
  const dataDir = await mkdtemp(join(tmpdir(), 'tandem-two-'));
  const { child, logged, exited } = startServerProcess({
    TANDEM_DATA_DIR: dataDir,
    TANDEM_API_KEY: API_KEY,
    PORT: '0',
    SIP_PORT: '0',
    ...env,
  });
  onTestFinished(async () => {
    child.kill('SIGKILL');
    await exited;
    await rm(dataDir, { recursive: true, force: true });
  });
  const { url, workspaceId } = (await logged('Tandem is ready')) as { url: string; workspaceId: string };
  return {
    url,
    workspaceId,
    ask: (method, path, body) =>
      fetch(new URL(path, url), {
        method,
        headers: { authorization: `Bearer ${API_KEY}`, ...(body && { 'content-type': 'application/json' }) },
        ...(body && { body: JSON.stringify(body) }),
      }),
  };
}

describe.skipIf(!(await redisIsReachable()))('two servers on one database and one Redis', () => {
  it('share the rate limit per minute of a workspace', async () => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const redis = await createTestRedis();
    onTestFinished(() => redis.drop());
    const env = { DATABASE_URL: database.url, REDIS_URL: redis.url, LIMITS_ENTERPRISE_PER_MINUTE: '7' };
    const servers = [await startServer(env), await startServer(env)];
    const remaining: string[] = [];
    for (let request = 0; request < 7; request += 1) {
      const response = await servers[request % 2]!.ask('GET', '/dialer/pool');
      expect(response.status).toBe(200);
      expect(response.headers.get('x-ratelimit-limit')).toBe('7');
      remaining.push(response.headers.get('x-ratelimit-remaining')!);
    }
    expect(remaining).toEqual(['6', '5', '4', '3', '2', '1', '0']);
    for (const { ask } of servers) {
      const refused = await ask('GET', '/dialer/pool');
      expect(refused.status).toBe(429);
      expect(refused.headers.get('retry-after')).toMatch(/^\d+$/);
      expect(refused.headers.get('x-ratelimit-remaining')).toBe('0');
      expect(await refused.json()).toMatchObject({ code: 'RATE_LIMITED' });
    }
  });

  it('place 20 calls a minute together, for any number of simultaneous requests', async () => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const redis = await createTestRedis();
    onTestFinished(() => redis.drop());
    const env = { DATABASE_URL: database.url, REDIS_URL: redis.url };
    const servers = [
      await startServer({ ...env, RTP_PORT_MIN: '37000', RTP_PORT_MAX: '37399' }),
      await startServer({ ...env, RTP_PORT_MIN: '37400', RTP_PORT_MAX: '37799' }),
    ] as const;
    const agent = await startSoftphone({ name: 'agent', user: '+919811111111', answer: { status: 486 } });
    const carrier = await startLoopbackCarrier({ routes: new Map([[agent.user, agent.address]]) });
    onTestFinished(async () => void (await Promise.all([agent.stop(), carrier.stop()])));
    const trunk = { name: 'Loopback', sip_uri: carrier.sipUri, channels: 100, numbers: ['+911140000001'] };
    expect((await servers[0].ask('POST', '/dialer/trunks', trunk)).status).toBe(201);
    expect((await servers[0].ask('POST', '/dialer/numbers', { e164: '+911140000001' })).status).toBe(201);
    await topUp(database.sql, {
      workspaceId: servers[0].workspaceId,
      amountNano: 5_000_000_000n,
      paymentType: 'one_time',
      operationKey: 'test',
      description: '',
    });
    const placement = { agent_number: '9811111111', customer_number: '9822222222' };
    const place = async (server: Server) => {
      const answer = await server.ask('POST', '/dialer/click2call', placement);
      return [answer.status, ((await answer.json()) as { code?: string }).code] as const;
    };
    // A machine too busy for media or the database rejects calls, which then do not count.
    const placeWhenFree = (server: Server) =>
      eventually(async () => {
        const outcome = await place(server);
        expect(['PLACEMENTS_OVERLOADED', 'no_free_channel']).not.toContain(outcome[1]);
        return outcome;
      });
    const codes = await Promise.all(Array.from({ length: 30 }, (_, index) => placeWhenFree(servers[index % 2]!)));
    expect(codes.filter(([status]) => status === 201)).toHaveLength(20);
    expect(codes.filter(([status]) => status !== 201)).toEqual(
      Array.from({ length: 10 }, () => [429, 'C2C_RATE_LIMITED']),
    );
    expect(await database.sql`select 1 from calls where state <> 'rejected'`).toHaveLength(20);
  });
});
