import { createHash, randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SystemCheck } from '../../actors/observability/system-health.ts';
import { createApiKey } from '../../storage/queries/api-keys.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { callWith, sessionOf } from './identity-fixture.ts';

let fixture: HttpFixture;
beforeAll(async () => {
  fixture = await createHttpFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());

const get = (as: Member = fixture.owner) => fixture.call('GET', '/system/health', { as });
const check = (changes: Partial<SystemCheck>): SystemCheck => ({
  ...{ id: 'disk', name: 'disk', status: 'ok', message: '9 GB free', action: null },
  ...changes,
});

async function limitedKey(scopes: string[]): Promise<Member> {
  const key = `sk_${randomBytes(24).toString('base64url')}`;
  const { workspaceId, userId } = fixture.owner;
  const { id: keyId } = await createApiKey(fixture.sql, {
    ...{ workspaceId, createdByUserId: userId, name: 'limited', prefix: key.slice(0, 7), last4: key.slice(-4), scopes },
    ...{ keyHash: createHash('sha256').update(key).digest(), now: fixture.now.current },
  });
  return { key, keyId, userId, workspaceId };
}

describe('GET /system/health', () => {
  it('returns the worst status of all checks, with remedies', async () => {
    const statusOf = async (checks: SystemCheck[]) => {
      fixture.systemHealth.current = { ...fixture.systemHealth.current, checks };
      return (await get()).body.data.status;
    };
    expect(await statusOf([])).toBe('ok');
    expect(await statusOf([check({})])).toBe('ok');
    const full = check({ id: 'disk-2', status: 'warning', message: '<b>full</b>', action: 'Make room.' });
    expect(await statusOf([check({}), full])).toBe('warning');
    expect((await get()).body.data.checks).toEqual([check({}), full]);
    expect(await statusOf([full, check({ status: 'failed' }), check({})])).toBe('failed');
  });

  it('lists nodes with their states, engines, downloads and queues', async () => {
    const node = {
      ...{ node: 'a', boot: 'boot-a', version: '1.0.0', startedAt: new Date(0), seenAt: new Date(0) },
      ...{ takenOverBy: null, isDraining: false, liveCalls: 2, mediaLoad: 0.5, canPlaceCalls: true, isSettled: false },
      ...{ leaseLeftMs: 7_640, silentForMs: 360, isThis: true },
    };
    const stt = {
      engine: 'pocketsphinx' as const,
      models: ['en'],
      loaded: 2,
      busy: 1,
      realTimeFactor: 0.4,
      problem: null,
    };
    fixture.systemHealth.current = {
      ...fixture.systemHealth.current,
      nodes: [
        node,
        { ...node, node: 'b', isThis: false, isDraining: true, version: null, silentForMs: null },
        { ...node, node: 'c', isThis: false, leaseLeftMs: -2_000 },
        { ...node, node: 'd', isThis: false, takenOverBy: 'a' },
        { ...node, node: 'e', isThis: false, takenOverBy: 'a', isSettled: true },
      ],
      recognition: { isRunning: false, engines: [stt] },
      synthesis: { isRunning: true, engines: [{ engine: 'espeak-ng', voices: 120, problem: null }] },
      downloads: [
        { model: 'm', kind: 'stt', bytes: 25, totalBytes: 100, updatedAt: new Date(0) },
        { model: null, kind: null, bytes: 25, totalBytes: null, updatedAt: new Date(0) },
      ],
      queues: [{ name: 'deliveries', waiting: 1, active: 2, delayed: 3 }],
    };
    const { body } = await get();
    expect(body.data.nodes[0]).toEqual({
      ...{ name: 'a', boot: 'boot-a', is_this: true, version: '1.0.0', state: 'running', calls: 2, media_load: 0.5 },
      ...{ can_place_calls: true, lease_seconds_left: 7.6, last_seen_seconds_ago: 0.4, taken_over_by: null },
      started_at: '1970-01-01T00:00:00.000Z',
    });
    const states = body.data.nodes.map(({ state }: { state: string }) => state);
    expect(states).toEqual(['running', 'draining', 'lost', 'lost', 'ended']);
    expect(body.data.engines).toMatchObject([
      { engine: 'pocketsphinx', kind: 'stt', is_running: false, models: ['en'], loaded: 2, busy: 1, voices: null },
      { engine: 'espeak-ng', kind: 'tts', is_running: true, voices: 120, loaded: null },
    ]);
    expect(body.data.downloads.map(({ progress }: { progress: number | null }) => progress)).toEqual([0.25, null]);
    expect(body.data.queues).toEqual([{ name: 'deliveries', waiting: 1, active: 2, delayed: 3 }]);
  });

  it('admits admins and owners of the first workspace, by session too', async () => {
    const { workspaceId } = fixture.owner;
    const admin = await fixture.addMemberWith('admin');
    expect((await get(admin)).status).toBe(200);
    const token = await sessionOf(fixture, admin);
    expect((await callWith(fixture, token, ['GET', `/system/health?workspace_id=${workspaceId}`])).status).toBe(200);
    for (const role of ['developer', 'member', 'viewer'] as const) {
      expect((await get(await fixture.addMemberWith(role))).body.code, role).toBe('FORBIDDEN');
    }
    const stranger = await fixture.addWorkspace();
    const { status, body } = await get(stranger);
    expect([status, body.code]).toEqual([403, 'FORBIDDEN']);
    expect(body.data).toBeUndefined();
    expect((await fixture.call('GET', '/system/health', { as: null })).status).toBe(401);
  });

  it('requires the scope system:read from a limited key', async () => {
    expect((await get(await limitedKey(['audit:read']))).status).toBe(403);
    expect((await get(await limitedKey(['system:read']))).status).toBe(200);
  });
});
