import { expect, it } from 'vitest';
import { inTransaction, type Sql } from '../../storage/database.ts';
import { callChangesSince, isSnapshot, liveCallsNow } from '../../storage/queries/call-changes.ts';
import { admitCall, type CallState } from '../../storage/queries/calls.ts';
import { onEveryServer } from './every-server.ts';
import { recordMoves } from './record-moves.ts';
import { admission, later, NOW, seedTrunk, seedWorkspace } from './seed.ts';

onEveryServer('changes of calls', (database) => {
  async function ready() {
    const { sql } = database();
    const { workspace } = await seedWorkspace(sql);
    const trunk = await seedTrunk(sql, { workspaceId: workspace.id });
    return { sql, workspaceId: workspace.id, trunk };
  }

  async function place(sql: Sql, workspaceId: string, createdAt = NOW) {
    const { call } = await admitCall(sql, admission({ workspaceId, now: createdAt }));
    return call.callId;
  }

  async function move(sql: Parameters<typeof recordMoves>[0], callId: string, event: string, state: CallState) {
    const rest = { leg: null, sipStatus: null, hangupCause: null, detail: null };
    await recordMoves(sql, callId, [{ event, state, at: NOW, ...rest }]);
  }

  const since = (sql: Sql, workspaceId: string, cursor: string, more: { limit?: number; since?: Date } = {}) =>
    callChangesSince(sql, { workspaceId, cursor, since: later(-60_000), limit: 100, ...more });

  it('lists live calls, then every later event once', async () => {
    const { sql, workspaceId } = await ready();
    const first = await place(sql, workspaceId);
    const now = await liveCallsNow(sql, { workspaceId, limit: 10 });
    expect([now.calls.map(({ callId }) => callId), now.isTruncated]).toEqual([[first], false]);
    await move(sql, first, 'call.initiated', 'initiated');
    const second = await place(sql, workspaceId, later(1));
    const changed = (await since(sql, workspaceId, now.cursor))!;
    expect(
      changed.changes.map(({ call, events }) => [call.callId, call.state, events.map(({ event }) => event)]),
    ).toEqual([
      [first, 'initiated', ['call.initiated']],
      [second, 'pending', ['call.pending']],
    ]);
    expect((await since(sql, workspaceId, changed.cursor))!.changes).toEqual([]);
  });

  it('includes an event whose transaction began before the cursor and commits after it', async () => {
    const { sql, workspaceId } = await ready();
    const [slow, quick] = [await place(sql, workspaceId), await place(sql, workspaceId, later(1))];
    const { cursor } = await liveCallsNow(sql, { workspaceId, limit: 10 });
    const stored = Promise.withResolvers<void>();
    const commit = Promise.withResolvers<void>();
    const transaction = inTransaction(sql, async (tx) => {
      await move(tx, slow, 'call.initiated', 'initiated');
      stored.resolve();
      await commit.promise;
    });
    await stored.promise;
    await move(sql, quick, 'call.initiated', 'initiated');
    const during = (await since(sql, workspaceId, cursor))!;
    expect(during.changes.map(({ call }) => call.callId)).toEqual([quick]);
    commit.resolve();
    await transaction;
    const after = (await since(sql, workspaceId, during.cursor))!;
    expect(after.changes.map(({ call, events }) => [call.callId, events.length])).toEqual([[slow, 1]]);
  });

  it('excludes other workspaces', async () => {
    const { sql, workspaceId } = await ready();
    const { workspace: other } = await seedWorkspace(sql);
    const { cursor } = await liveCallsNow(sql, { workspaceId: other.id, limit: 10 });
    await place(sql, workspaceId);
    expect((await since(sql, other.id, cursor))!.changes).toEqual([]);
    expect((await liveCallsNow(sql, { workspaceId: other.id, limit: 10 })).calls).toEqual([]);
    expect((await since(sql, workspaceId, cursor))!.changes).toHaveLength(1);
  });

  it('reports truncation and lists the newest calls', async () => {
    const { sql, workspaceId } = await ready();
    const calls: string[] = [];
    for (let at = 0; at < 3; at++) calls.push(await place(sql, workspaceId, later(at)));
    const { calls: shown, isTruncated } = await liveCallsNow(sql, { workspaceId, limit: 2 });
    expect([shown.map(({ callId }) => callId), isTruncated]).toEqual([[calls[2], calls[1]], true]);
  });

  it('excludes earlier events, and returns nothing beyond the limit', async () => {
    const { sql, workspaceId } = await ready();
    const { cursor } = await liveCallsNow(sql, { workspaceId, limit: 10 });
    await place(sql, workspaceId);
    await place(sql, workspaceId, later(1));
    expect(await since(sql, workspaceId, cursor, { limit: 1 })).toBeNull();
    expect((await since(sql, workspaceId, cursor, { since: later(1) }))!.changes).toHaveLength(1);
  });

  it('rejects a future or invalid cursor', async () => {
    const { sql, workspaceId } = await ready();
    await place(sql, workspaceId);
    for (const cursor of ['9000000000000000000:9000000000000000000:', '', '1', '3:2:', "1:2:'; drop table calls"]) {
      expect(await since(sql, workspaceId, cursor), cursor).toBeNull();
    }
    // A valid cursor before all changes.
    expect((await since(sql, workspaceId, '1:1:'))!.changes).toHaveLength(1);
  });

  it('accepts the snapshots of the database, and none that it rejects', async () => {
    const { sql } = await ready();
    const texts = ['1:1:', '5:9:5,7,8', '5:9:', '0:1:', '5:4:', '5:9:7,6', '5:9:9', '5:9:4', '5:9:7,7', '5:9:7,', '::'];
    for (const text of [...texts, '1:9223372036854775807:', '1:9223372036854775808:', '01:2:']) {
      const isRead = await sql`select ${text}::pg_snapshot`.then(
        () => true,
        () => false,
      );
      if (isSnapshot(text)) expect(isRead, text).toBe(true);
    }
    const [row] = await sql<{ text: string }[]>`select pg_current_snapshot()::text as text`;
    expect(isSnapshot(row!.text)).toBe(true);
  });
});
