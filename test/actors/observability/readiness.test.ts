import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createReadiness, type ReadinessOptions } from '../../../actors/observability/readiness.actor.ts';
import { connect } from '../../../storage/database.ts';
import { openJobs } from '../../../storage/jobs.ts';
import { eventually } from '../../eventually.ts';
import { fakeSql } from '../../storage/fake-sql.ts';
import { openGate } from '../../storage/gate.ts';
import { createTestDatabase, type TestDatabase } from '../../storage/test-database.ts';
import { REDIS_URL, redisIsReachable } from '../../storage/test-redis.ts';

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const HAS_REDIS = await redisIsReachable();

function readinessWith(changes: Partial<ReadinessOptions> = {}) {
  return createReadiness({
    sql: database.sql,
    jobs: { pingRedis: null },
    sip: { state: 'connected' },
    mediaPlane: {
      capacity: () => ({ sessions: 0, maxSessions: 1, workers: 1, load: 0, utilization: [0], latenessMs: [0] }),
    },
    engines: { recognition: { isRunning: true }, synthesis: { isRunning: true } },
    dialer: { isDraining: false },
    dataDir: import.meta.dirname,
    freeBytesOf: async () => 1e12,
    ...changes,
  });
}

async function failuresWith(changes: Partial<ReadinessOptions>) {
  const checks = await readinessWith(changes).check();
  return checks.filter(({ ok }) => !ok).map(({ name, reason }) => [name, reason]);
}

describe('readiness', () => {
  it('checks every dependency, and Redis only if used', async () => {
    const names = ['database', 'disk', 'sip_server', 'media_workers', 'recognition', 'synthesis', 'accepting_work'];
    const checks = await readinessWith({ freeBytesOf: undefined }).check();
    expect(checks).toEqual(names.map((name) => ({ name, ok: true, reason: null })));
    const withRedis = await readinessWith({ jobs: { pingRedis: async () => {} } }).check();
    expect(withRedis.map(({ name }) => name).toSorted()).toEqual([...names, 'redis'].toSorted());
  });

  const refuses = () => {
    throw new Error('password authentication failed for user "tandem" at 10.0.0.7');
  };

  it.each<[string, Partial<ReadinessOptions>, [string, string]]>([
    ['a database that refuses, without its message', { sql: fakeSql(refuses) }, ['database', 'It cannot be reached.']],
    [
      'a database that does not respond',
      { sql: fakeSql(() => new Promise(() => {})), timeoutMs: 10 },
      ['database', 'It did not respond within 0.01 s.'],
    ],
    ['Redis that is away', { jobs: { pingRedis: async () => refuses() } }, ['redis', 'It cannot be reached.']],
    [
      'a SIP server that is not connected',
      { sip: { state: 'disconnected' } },
      ['sip_server', 'The SIP server is not connected.'],
    ],
    [
      'a platform without media workers',
      {
        mediaPlane: {
          capacity: () => ({ sessions: 0, maxSessions: 1, workers: 0, load: 1, utilization: [0], latenessMs: [0] }),
        },
      },
      ['media_workers', 'No media worker is running.'],
    ],
    [
      'a recognition thread that restarts',
      { engines: { recognition: { isRunning: false }, synthesis: { isRunning: true } } },
      ['recognition', 'The recognition thread is not running.'],
    ],
    [
      'a synthesis thread that restarts',
      { engines: { recognition: { isRunning: true }, synthesis: { isRunning: false } } },
      ['synthesis', 'The synthesis thread is not running.'],
    ],
    [
      'a full disk',
      { freeBytesOf: async () => 199e6 },
      ['disk', 'Less than 200 MB are free on the disk of the data folder.'],
    ],
    [
      'a missing data folder',
      { freeBytesOf: undefined, dataDir: '/nowhere/at/all' },
      ['disk', 'The free space of the data folder is unknown.'],
    ],
    [
      'a disk that does not respond',
      { freeBytesOf: () => new Promise(() => {}), timeoutMs: 10 },
      ['disk', 'It did not respond within 0.01 s.'],
    ],
    ['a drain', { dialer: { isDraining: true } }, ['accepting_work', 'The server is shutting down.']],
  ])('reports %s', async (_name, changes, failure) => {
    expect(await failuresWith(changes)).toEqual([failure]);
  });

  it('checks a dependency once for concurrent callers', async () => {
    let asked = 0;
    const readiness = readinessWith({
      jobs: {
        pingRedis: async () => {
          asked += 1;
        },
      },
    });
    await Promise.all([readiness.check(), readiness.check(), readiness.check()]);
    await readiness.check();
    expect(asked).toBe(1);
  });

  it('follows a database server that disappears and returns', async () => {
    const gate = await openGate(database.url);
    const sql = connect({ url: gate.url, max: 1, connectTimeoutMs: 1_000 });
    expect(await failuresWith({ sql })).toEqual([]);
    await gate.shut();
    expect(await failuresWith({ sql })).toEqual([['database', 'It cannot be reached.']]);
    await gate.open();
    await eventually(async () => expect(await failuresWith({ sql })).toEqual([]));
    await sql.end();
    await gate.shut();
  });

  it.skipIf(!HAS_REDIS)('checks the Redis of the job queues', async () => {
    const jobs = await openJobs({ databaseUrl: database.url, redisUrl: REDIS_URL, namespace: 'tandem-readiness' });
    expect(await failuresWith({ jobs })).toEqual([]);
    await jobs.close();
    expect(await failuresWith({ jobs })).toEqual([['redis', 'It cannot be reached.']]);
  });
});
