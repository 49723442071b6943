import { tmpdir } from 'node:os';
import { expect, it } from 'vitest';
import {
  createSystemHealth,
  type Diagnosed,
  type SystemHealthOptions,
} from '../../../actors/observability/system-health.actor.ts';
import { fakeSql } from '../../storage/fake-sql.ts';
import { createTestClock, createTestLogger, FakeMediaPlane } from '../fakes.ts';

const broken = () => Promise.reject(new Error('it is away'));

function open(changes: Partial<SystemHealthOptions> = {}) {
  const clock = createTestClock();
  let rounds = 0;
  let found: readonly Diagnosed[] = [];
  const health = createSystemHealth({
    sql: fakeSql(async () => [{ version: '17.5' }]),
    self: { node: 'node-1', boot: 'boot-1' },
    diagnose: async () => {
      rounds += 1;
      return found;
    },
    readiness: { check: async () => [{ name: 'sip_server', ok: false, reason: 'It is not connected.' }] },
    mediaPlane: new FakeMediaPlane(),
    engines: {
      recognition: { isRunning: true, engines: async () => [] },
      synthesis: { isRunning: true, engines: async () => [] },
    },
    models: { list: async () => ({ models: [], cached: false }) },
    modelsDir: tmpdir(),
    jobs: { counts: async () => ({ deliveries: { waiting: 1, active: 0, delayed: 0 } }) },
    ...{ version: '1.0.0', clock, logger: createTestLogger() },
    ...changes,
  });
  const find = (findings: readonly Diagnosed[]) => {
    found = findings;
  };
  return { health, clock, find, rounds: () => rounds };
}

it('system health gives each check a unique id, whatever the trunk names', async () => {
  const { health, find } = open();
  const trunk = { status: 'warn', message: 'It is down.', advice: 'Check it.' } as const;
  find([
    { check: 'carrier of <b>A&B</b>', ...trunk },
    { check: 'carrier of  b/a-b b', ...trunk },
    { check: 'carrier of b/a-b b 2', ...trunk },
    { check: 'carrier of दिल्ली', ...trunk },
    { check: 'disk', status: 'ok', message: '9 GB free', advice: null },
  ]);
  const { checks } = await health.report();
  expect(checks.map(({ id, status }) => [id, status])).toEqual([
    ['sip-server', 'failed'],
    ['carrier-of-b-a-b-b', 'warning'],
    ['carrier-of-b-a-b-b-2', 'warning'],
    ['carrier-of-b-a-b-b-2-2', 'warning'],
    [expect.stringMatching(/^carrier-of-\S+$/), 'warning'],
    ['disk', 'ok'],
  ]);
  expect(checks[0]).toMatchObject({ name: 'sip_server', message: 'It is not connected.', action: expect.any(String) });
  expect(checks[5]).toMatchObject({ action: null });
});

it('system health caches the checks for 15 seconds', async () => {
  const { health, clock, rounds } = open();
  const [one, two] = await Promise.all([health.report(), health.report()]);
  clock.advance(14_999);
  await health.report();
  expect([rounds(), one.checkedAt]).toEqual([1, two.checkedAt]);
  clock.advance(1);
  expect((await health.report()).checkedAt).not.toEqual(one.checkedAt);
  expect(rounds()).toBe(2);
});

it('system health reports the working parts when others are broken', async () => {
  const engines = { isRunning: false, engines: broken };
  const { health } = open({
    sql: fakeSql(broken),
    engines: { recognition: engines, synthesis: engines },
    ...{ models: { list: broken }, jobs: { counts: broken } },
  });
  expect(await health.report()).toMatchObject({
    ...{ nodes: [], languageModels: [], downloads: [], queues: [] },
    recognition: { isRunning: false, engines: [] },
    media: { load: 0, workers: [{ utilization: 0, latenessMs: 0 }] },
    versions: { tandem: '1.0.0', postgres: null },
  });
});
