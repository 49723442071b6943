import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import type { Sql } from '../../storage/database.ts';
import { admitCall, getCallById } from '../../storage/queries/calls.ts';
import {
  deleteExpiredRecording,
  expiredRecordings,
  forgetObjectsOfRecording,
  recordingsToPurge,
} from '../../storage/queries/recording-retention.ts';
import { getRecordingSettings, updateRecordingSettings } from '../../storage/queries/recording-settings.ts';
import { createRecording, getRecording, updateRecording } from '../../storage/queries/recordings.ts';
import { onEveryServer } from './every-server.ts';
import { admission, later, NOW, seedTrunk, seedWorkspace } from './seed.ts';

const DAY_MS = 86_400_000;

async function seedRecording(sql: Sql, workspaceId: string, { node = 'node-1', at = NOW } = {}): Promise<string> {
  const id = randomUUID();
  const { call } = await admitCall(sql, admission({ workspaceId, ownerNode: node }));
  await createRecording(sql, { id, callId: call.callId, workspaceId, node, now: at });
  await sql`update calls set recording_id = ${id}, state = 'completed' where call_id = ${call.callId}`;
  await updateRecording(sql, { id, now: at, patch: { status: 'uploaded', objectKey: `recordings/${id}.wav` } });
  return id;
}

onEveryServer('recording retention', (database) => {
  it('returns expired recordings of workspaces with a limit, oldest first', async () => {
    const { sql } = database();
    const [limited, unlimited] = [await seedWorkspace(sql), await seedWorkspace(sql)];
    for (const [index, { workspace }] of [limited, unlimited].entries()) {
      await seedTrunk(sql, { workspaceId: workspace.id, numbers: [`+9111500000${index}0`] });
    }
    const older = await seedRecording(sql, limited.workspace.id);
    const newer = await seedRecording(sql, limited.workspace.id, { at: later(1_000) });
    await seedRecording(sql, unlimited.workspace.id);
    const expired = async (ms: number) =>
      (await expiredRecordings(sql, { now: later(ms), limit: 10 })).map(({ id }) => id);
    expect(await expired(5_000 * DAY_MS)).toEqual([]);
    expect(await updateRecordingSettings(sql, limited.workspace.id, { retentionDays: 7 })).toEqual({
      retentionDays: 7,
      beep: false,
    });
    expect(await expired(7 * DAY_MS)).toEqual([]);
    expect(await expired(7 * DAY_MS + 1)).toEqual([older]);
    expect(await expired(7 * DAY_MS + 1_001)).toEqual([older, newer]);
    expect(await expiredRecordings(sql, { now: later(8 * DAY_MS), limit: 1 })).toEqual([{ id: older }]);
    expect(await getRecordingSettings(sql, unlimited.workspace.id)).toEqual({ retentionDays: null, beep: false });
    await expect(updateRecordingSettings(sql, limited.workspace.id, { retentionDays: 0 })).rejects.toThrow();
  });

  it('caps the period of a workspace by that of the operator', async () => {
    const { sql } = database();
    const { workspace } = await seedWorkspace(sql);
    await seedTrunk(sql, { workspaceId: workspace.id });
    const id = await seedRecording(sql, workspace.id);
    const dueAfter = async (days: number, mostDays: number) =>
      (await expiredRecordings(sql, { now: later(days * DAY_MS + 1), mostDays, limit: 10 })).length === 1;
    expect([await dueAfter(8, 0), await dueAfter(8, 9), await dueAfter(8, 8)]).toEqual([false, false, true]);
    await updateRecordingSettings(sql, workspace.id, { retentionDays: 5 });
    expect([await dueAfter(5, 8), await dueAfter(4, 8), await dueAfter(4, 4)]).toEqual([true, false, true]);
    expect(await deleteExpiredRecording(sql, { id, now: later(4 * DAY_MS + 1), mostDays: 8 })).toBe(false);
    expect(await deleteExpiredRecording(sql, { id, now: later(4 * DAY_MS + 1), mostDays: 4 })).toBe(true);
  });

  it('keeps a recording of today if the clock of the node is far ahead', async () => {
    const { sql } = database();
    const { workspace } = await seedWorkspace(sql);
    await seedTrunk(sql, { workspaceId: workspace.id });
    await updateRecordingSettings(sql, workspace.id, { retentionDays: 30 });
    const id = await seedRecording(sql, workspace.id, { at: new Date() });
    const now = new Date(Date.now() + 365 * DAY_MS);
    expect(await expiredRecordings(sql, { now, limit: 10 })).toEqual([]);
    expect(await deleteExpiredRecording(sql, { id, now })).toBe(false);
  });

  it('marks a recording and its call deleted once, only while the settings require it', async () => {
    const { sql } = database();
    const { workspace } = await seedWorkspace(sql);
    await seedTrunk(sql, { workspaceId: workspace.id });
    const id = await seedRecording(sql, workspace.id);
    const now = later(10 * DAY_MS);
    expect(await deleteExpiredRecording(sql, { id, now })).toBe(false);
    await updateRecordingSettings(sql, workspace.id, { retentionDays: 10 });
    expect(await deleteExpiredRecording(sql, { id, now })).toBe(false);
    const due = later(10 * DAY_MS + 1);
    const results = await Promise.all([1, 2, 3, 4].map(() => deleteExpiredRecording(sql, { id, now: due })));
    expect(results.filter(Boolean)).toEqual([true]);
    const recording = (await getRecording(sql, id))!;
    expect(recording).toMatchObject({ status: 'deleted', objectKey: `recordings/${id}.wav`, deletedAt: due });
    expect((await getCallById(sql, recording.callId))?.recordingStatus).toBe('deleted');
  });

  it('lists recordings to purge by page and node until forgotten', async () => {
    const { sql } = database();
    const { workspace } = await seedWorkspace(sql);
    await seedTrunk(sql, { workspaceId: workspace.id });
    await updateRecordingSettings(sql, workspace.id, { retentionDays: 1 });
    const ids: string[] = [];
    for (const node of ['node-1', 'node-2', 'node-1']) {
      const id = await seedRecording(sql, workspace.id, { node });
      await deleteExpiredRecording(sql, { id, now: later(2 * DAY_MS) });
      ids.push(id);
    }
    const purge = async (node: string | null, afterId: string | null = null, limit = 10) =>
      (await recordingsToPurge(sql, { node, afterId, limit })).map(({ id }) => id);
    const sorted = ids.toSorted();
    expect(await purge(null)).toEqual(sorted);
    expect(await purge(null, null, 2)).toEqual(sorted.slice(0, 2));
    expect(await purge(null, sorted[1]!)).toEqual(sorted.slice(2));
    expect(await purge('node-2')).toEqual([ids[1]]);
    await forgetObjectsOfRecording(sql, ids[1]!);
    expect(await purge('node-2')).toEqual([]);
    expect((await getRecording(sql, ids[1]!))?.objectKey).toBeNull();
  });
});
