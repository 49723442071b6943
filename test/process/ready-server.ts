import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { PublicCall } from '../../actors/call-view.ts';
import { apiClient } from '../../bin/cli/api-client.ts';
import { connect, type Sql } from '../../storage/database.ts';
import { runningDatabaseUrl } from '../../storage/embedded/running.ts';
import { topUp, walletOf } from '../../storage/ledger.ts';
import { untilTruthy } from '../eventually.ts';
import { startLoopbackCarrier } from '../softphone/loopback-carrier.ts';
import { type SoftphoneOptions, startSoftphone } from '../softphone/softphone.ts';
import { createTestDatabase } from '../storage/test-database.ts';
import { createTestRedis, redisIsReachable } from '../storage/test-redis.ts';
import { type ServerProcess, startServerProcess } from './server-process.ts';

/** Server processes of a test file, on data folders that outlive them. */

export const API_KEY = 'sk_test_process_0123456789abcdef';

/** Resources to close in reverse order. */
export const clean: (() => Promise<unknown> | unknown)[] = [];

export async function cleanUp(): Promise<void> {
  for (const step of clean.splice(0).reverse()) await step();
}

/** Settings for shared queues: Redis if reachable, else Postgres. */
export async function redisOfServers(): Promise<Record<string, string>> {
  if (!(await redisIsReachable())) return {};
  const redis = await createTestRedis();
  clean.push(() => redis.drop());
  return { REDIS_URL: redis.url };
}

export interface Ready {
  dataDir: string;
  server: ServerProcess;
  url: string;
  workspaceId: string;
  api: ReturnType<typeof apiClient>;
}

export async function startReady(dataDir: string, env: Record<string, string> = {}): Promise<Ready> {
  const server = startServerProcess({ ...environment(dataDir), ...env });
  clean.push(async () => {
    server.child.kill('SIGTERM');
    server.child.kill('SIGINT');
    await server.exited;
  });
  const { url, workspaceId } = (await server.logged('Tandem is ready')) as { url: string; workspaceId: string };
  return { dataDir, server, url, workspaceId, api: apiClient({ url, apiKey: API_KEY }) };
}

export function environment(dataDir: string, env: Record<string, string> = {}): Record<string, string> {
  return {
    TANDEM_DATA_DIR: dataDir,
    TANDEM_API_KEY: API_KEY,
    ...(databases.has(dataDir) && { DATABASE_URL: databases.get(dataDir) }),
    PORT: '0',
    SIP_PORT: '0',
    RTP_PORT_MIN: '36000',
    RTP_PORT_MAX: '36999',
    CALLBACK_ALLOW_CIDRS: '127.0.0.0/8',
    ...env,
  };
}

/** Database URL by data folder, for servers that do not start a Postgres of their own. */
const databases = new Map<string, string>();

/**
 * A new data folder. Its servers use the given database, else a new one of the test run's Postgres, because an embedded
 * one costs more than the rest of the start; a test about it sets `embedsPostgres`.
 */
export async function dataFolder({
  embedsPostgres = false,
  databaseUrl,
}: {
  embedsPostgres?: boolean;
  databaseUrl?: string;
} = {}): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), 'tandem-process-'));
  clean.push(() => rm(dataDir, { recursive: true, force: true }));
  if (databaseUrl !== undefined) databases.set(dataDir, databaseUrl);
  if (embedsPostgres || databaseUrl !== undefined) return dataDir;
  const database = await createTestDatabase({ max: 1 });
  databases.set(dataDir, database.url);
  clean.push(async () => {
    databases.delete(dataDir);
    await database.drop();
  });
  return dataDir;
}

/** Number of servers that can place calls and hold a lease until after `since`. Default: those that live now. */
export async function placingServers(sql: Sql, since = 'now'): Promise<number> {
  const rows = await sql`select 1 from nodes where lease_until > ${since}::text::timestamptz and can_place_calls`;
  return rows.length;
}

/** Until each server knows that all of them can place calls: it reads this whenever it renews its lease. */
export async function untilServersKnowEachOther(sql: Sql, count: number): Promise<void> {
  await untilTruthy(async () => (await placingServers(sql)) === count, `${count} servers can place calls`);
  // The second renewal follows the end of the first.
  for (let renewals = 0; renewals < 2; renewals += 1) {
    const [known] = await sql<{ latest: string }[]>`select max(lease_until)::text as latest from nodes`;
    const isRenewed = async () => (await placingServers(sql, known!.latest)) === count;
    await untilTruthy(isRenewed, 'all servers have renewed their leases');
  }
}

/** Two phones and a carrier, a trunk to it, a number and money. */
export async function townFor(ready: Ready, phones: Phones = {}) {
  const town = await peersOf(ready, phones);
  await withDatabase(ready.dataDir, (sql) => fund(sql, ready.workspaceId));
  return town;
}

type Phones = Partial<Record<'agent' | 'customer', Partial<SoftphoneOptions>>>;

/** Two phones and a carrier, a trunk to it and a number. */
export async function peersOf({ api }: Pick<Ready, 'api'>, phones: Phones = {}) {
  const agent = await startSoftphone({
    name: 'agent',
    user: '+919811111111',
    audio: { kind: 'tone', frequencyHz: 440 },
    ...phones.agent,
  });
  const customer = await startSoftphone({
    name: 'customer',
    user: '+919822222222',
    audio: { kind: 'tone', frequencyHz: 660 },
    ...phones.customer,
  });
  const routes = new Map([agent, customer].map((phone) => [phone.user, phone.address]));
  const carrier = await startLoopbackCarrier({ routes });
  clean.push(() => Promise.all([agent.stop(), customer.stop(), carrier.stop()]));
  await api.post('/dialer/trunks', {
    name: 'Loopback',
    sip_uri: carrier.sipUri,
    numbers: ['+911140000001'],
    price_per_minute_usd: 0.6,
  });
  await api.post('/dialer/numbers', { e164: '+911140000001' });
  return { agent, customer, carrier };
}

export async function fund(sql: Sql, workspaceId: string, amountNano = 5_000_000_000n): Promise<void> {
  await topUp(sql, {
    ...{ workspaceId, amountNano, paymentType: 'one_time', operationKey: 'test', description: '' },
  });
}

export async function callOf({ api }: Pick<Ready, 'api'>, callId: string): Promise<PublicCall> {
  return (await api.get<{ call: PublicCall }>(`/dialer/click2call/${callId}?refresh=1`)).call;
}

export async function heldOf({ dataDir, workspaceId }: Ready): Promise<bigint> {
  return await withDatabase(dataDir, async (sql) => (await walletOf(sql, workspaceId)).heldNano);
}

export async function withDatabase<T>(dataDir: string, work: (sql: Sql) => Promise<T>): Promise<T> {
  const sql = connect({ url: databases.get(dataDir) ?? (await runningDatabaseUrl(dataDir)) ?? '', max: 1 });
  try {
    return await work(sql);
  } finally {
    await sql.end();
  }
}
