import { mkdir, mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { startCallbackReceiver } from '../../bin/demo/callback-receiver.ts';
import { openDatabase, type Sql } from '../../storage/database.ts';
import { topUp } from '../../storage/ledger.ts';
import { type ModelServer, startModelServer } from '../../test/language/model-server.ts';
import { API_KEY } from '../../test/process/ready-server.ts';
import { startLoopbackCarrier } from '../../test/softphone/loopback-carrier.ts';
import { type Softphone, startSoftphone } from '../../test/softphone/softphone.ts';
import { addressOf, throughPort } from '../../test/storage/database-address.ts';
import { openCuttableProxy } from './cuttable-proxy.ts';
import { type ChaosNode, openNode } from './node.ts';
import {
  type ChaosPostgres,
  type ChaosRedis,
  type ChaosSipServer,
  openPostgres,
  openRedis,
  openSipServer,
} from './services.ts';

export const CALLBACK_SECRET = 'the-secret-of-the-chaos-program';
/** A rented number whose calls ring the agent. */
export const DID = '+911140000001';

export interface Town extends AsyncDisposable {
  readonly sql: Sql;
  readonly workspaceId: string;
  readonly nodes: ChaosNode[];
  readonly agent: Softphone;
  readonly customers: readonly Softphone[];
  readonly receiver: Awaited<ReturnType<typeof startCallbackReceiver>>;
  readonly models: ModelServer;
  readonly postgres: ChaosPostgres;
  /** Null: not installed. */
  readonly redis: ChaosRedis | null;
  /** Null: each node has an embedded one, which ends with it. */
  readonly sip: ChaosSipServer | null;
}

export interface TownOptions {
  nodes: number;
  /** `shared`: one SIP server that outlives the nodes. */
  sip: 'shared' | 'embedded';
}

/** Starts everything: Postgres, Redis if installed, the nodes, a carrier, phones and a callback receiver. */
export async function openTown(options: TownOptions): Promise<Town> {
  await using opening = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'tandem-chaos-'));
  opening.defer(() => rm(folder, { recursive: true, force: true }));
  const postgres = await openPostgres(join(folder, 'database'));
  opening.defer(() => postgres.stop());
  const toPostgres = await openCuttableProxy(() => addressOf(postgres.url));
  opening.defer(() => toPostgres.close());
  const database = await openDatabase({ url: throughPort(postgres.url, toPostgres.port), max: 4 });
  opening.defer(() => database.close());
  const redis = await openRedis();
  if (redis) opening.defer(() => redis.kill());
  const sip = options.sip === 'shared' ? await openSipServer() : null;
  if (sip) opening.defer(() => sip.kill());
  const models = opening.use(await startModelServer());
  // Most of a server's start is compilation.
  process.env.NODE_COMPILE_CACHE ??= resolve('node_modules/.cache/test-compilations');
  const objectsDir = join(folder, 'objects');
  await mkdir(objectsDir);
  const clockLibrary = await findClockLibrary();
  const env = {
    ...{ LIMITS_ENTERPRISE_PER_MINUTE: '1000000', LIMITS_ENTERPRISE_PER_DAY: '100000000' },
    ...{ PLACEMENTS_PER_MINUTE: '100000', LLM_BASE_URL: models.baseUrl, LLM_MODEL: 'tiny-1.0' },
  };
  const nodes: ChaosNode[] = [];
  for (let index = 0; index < options.nodes; index += 1) {
    const node = opening.use(await openNode({ index, folder, objectsDir, postgres, redis, sip, clockLibrary, env }));
    nodes.push(node);
    await node.start();
  }

  const { sql } = database;
  const ringForMs = 300;
  const agent = await startSoftphone({ name: 'agent', user: '+919811111111', ringForMs });
  const customers = [
    await startSoftphone({ name: 'talks', user: '+919822222221', ringForMs }),
    await startSoftphone({ name: 'hangs up', user: '+919822222222', ringForMs, autoHangupAfterMs: 3_000 }),
    await startSoftphone({ name: 'rings', user: '+919822222223', answer: 'manual' }),
    await startSoftphone({ name: 'is busy', user: '+919822222224', answer: { status: 486 } }),
    await startSoftphone({ name: 'answers late', user: '+919822222225', ringForMs: 2_000 }),
  ];
  const carrier = await startLoopbackCarrier({
    routes: new Map([agent, ...customers].map((phone) => [phone.user, phone.address])),
  });
  const receiver = await startCallbackReceiver(CALLBACK_SECRET);
  opening.defer(async () => {
    await Promise.all([agent, ...customers].map((phone) => phone.stop()));
    await Promise.all([carrier.stop(), receiver.stop()]);
  });
  const [workspace] = await sql<{ id: string }[]>`select id from workspaces order by created_at limit 1`;
  const workspaceId = workspace!.id;
  const url = nodes[0]!.url;
  const trunk = { name: 'Loopback', sip_uri: carrier.sipUri, numbers: [DID], price_per_minute_usd: 0.6, channels: 500 };
  await send(url, 'POST', '/dialer/trunks', trunk);
  await send(url, 'POST', '/dialer/numbers', { e164: DID });
  const rule = { action: 'forward', endpoint: { type: 'phone', number: agent.user }, record: true };
  await send(url, 'PUT', `/dialer/numbers/${encodeURIComponent(DID)}/inbound`, rule);
  await topUp(sql, {
    ...{ workspaceId, amountNano: 500_000_000_000n, paymentType: 'one_time', operationKey: 'chaos', description: '' },
  });
  const opened = opening.move();
  return {
    ...{ sql, workspaceId, nodes, agent, customers, receiver, models, postgres, redis, sip },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

/** Resolves with any status. Rejects if there is no answer within 20 s. */
export async function post(url: string, path: string, body: object = {}): Promise<Response> {
  return await ask(url, 'POST', path, body);
}

async function send(url: string, method: string, path: string, body: object): Promise<void> {
  const answer = await ask(url, method, path, body);
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
}

async function ask(url: string, method: string, path: string, body: object): Promise<Response> {
  return await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(20_000),
  });
}

/** Finds the library of Debian's package `libfaketime`; null if it is not installed. */
async function findClockLibrary(): Promise<string | null> {
  for (const folder of await readdir('/usr/lib').catch(() => [])) {
    const library = join('/usr/lib', folder, 'faketime', 'libfaketimeMT.so.1');
    if ((await readdir(join(library, '..')).catch(() => [])).length > 0) return library;
  }
  return null;
}
