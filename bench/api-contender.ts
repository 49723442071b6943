import { createHash, randomBytes } from 'node:crypto';
import type { AddressInfo } from 'node:net';
import Fastify, { type FastifyInstance } from 'fastify';
import { createHttpServer } from '../http/server.ts';
import type { HttpServerOptions } from '../http/server-options.ts';
import { createLogger } from '../logging.ts';
import { openDatabase, POOL_SIZE } from '../storage/database.ts';
import { createApiKey } from '../storage/queries/api-keys.ts';
import { admitCall } from '../storage/queries/calls.ts';
import { createSecretBox } from '../storage/secrets.ts';
import { FakeDialer } from '../test/http/fake-dialer.ts';
import { countedOnly } from '../test/http/fake-operations.ts';
import { partial } from '../test/partial.ts';
import { admission, seedTrunk, seedWorkspace } from '../test/storage/seed.ts';
import { createTestDatabase } from '../test/storage/test-database.ts';

/** A contender of `api.ts` in a process of its own, so that its CPU time can be measured alone. */

export type ApiContender = 'constant' | 'tandem';

export type ApiContenderAnswer =
  | { type: 'listening'; port: number; path: string; authorization: string }
  /** CPU of the whole process since `start`. */
  | { type: 'measured'; cpuMs: number };

const contender = process.argv[2] as ApiContender;
await using testDatabase = await createTestDatabase();
const database = await openDatabase({ url: testDatabase.url, max: POOL_SIZE });
const { app, path, authorization } = await openTandem();
const server = contender === 'tandem' ? app : await openConstant();
await server.listen({ host: '127.0.0.1', port: 0 });
const { port } = server.server.address() as AddressInfo;
const stopped = Promise.withResolvers<void>();
let started = process.cpuUsage();
process.on('message', (request: 'start' | 'stop') => {
  if (request === 'start') {
    started = process.cpuUsage();
    return;
  }
  const used = process.cpuUsage(started);
  reply({ type: 'measured', cpuMs: (used.user + used.system) / 1000 });
  stopped.resolve();
});
reply({ type: 'listening', port, path, authorization });
await stopped.promise;
await server.close();
if (server !== app) await app.close();
await database.close();
process.disconnect();

function reply(answer: ApiContenderAnswer): void {
  process.send!(answer);
}

/** Serves the API with one call to query. Limits are counted, but high enough never to be reached. */
async function openTandem(): Promise<{ app: FastifyInstance; path: string; authorization: string }> {
  const { sql } = database;
  const { workspace, user } = await seedWorkspace(sql);
  await seedTrunk(sql, { workspaceId: workspace.id });
  const { call } = await admitCall(sql, admission({ workspaceId: workspace.id, createdByUserId: user.id }));
  const key = `sk_${randomBytes(24).toString('base64url')}`;
  await createApiKey(sql, {
    workspaceId: workspace.id,
    createdByUserId: user.id,
    name: 'bench',
    prefix: key.slice(0, 7),
    last4: key.slice(-4),
    keyHash: createHash('sha256').update(key).digest(),
    now: new Date(),
  });
  const secrets = createSecretBox(Buffer.alloc(32, 1));
  const logger = createLogger({ level: 'info', destination: { write: () => {} } });
  const httpServer = createHttpServer(
    partial<HttpServerOptions>({
      ...{ sql, dialer: new FakeDialer(), metrics: countedOnly(), secrets, logger },
      rateLimits: { plans: { enterprise: { perMinute: 100_000_000, perDay: 900_000_000 } } },
    }),
  );
  return { app: httpServer, path: `/dialer/click2call/${call.callId}`, authorization: `Bearer ${key}` };
}

/** The minimum: the same framework and response bytes, without checks. */
async function openConstant(): Promise<FastifyInstance> {
  const answer = await app.inject({ url: path, headers: { authorization } });
  if (answer.statusCode !== 200) throw new Error(`the call answers ${answer.statusCode}: ${answer.body}`);
  const body: unknown = answer.json();
  const bare = Fastify();
  bare.get('/dialer/click2call/:id', async () => body);
  return bare;
}
