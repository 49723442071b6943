import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { listCallEvents } from '../../storage/queries/calls.ts';
import { listUsage } from '../../storage/queries/usage.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import { placeCallOn } from './placed-call.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const SOUND = { source: { kind: 'text', text: 'Please hold.', voiceId: null }, isLooped: false } as const;

async function placed() {
  const call = await placeCallOn({ sql: database.sql });
  const target = { workspaceId: call.caller.workspaceId, callId: call.callId };
  return { ...call, play: (...legs: string[]) => call.dialer.play(target, { ...SOUND, legs }) };
}

describe('text playback to a live call', () => {
  it('fails before synthesis while the parties are not bridged, and for an unknown leg', async () => {
    const call = await placed();
    await expect(call.play('agent')).rejects.toMatchObject({ code: 'CALL_NOT_LIVE' });
    await call.bridge();
    await expect(call.play('agent', 'leg_1')).rejects.toMatchObject({ code: 'LEG_NOT_FOUND' });
    expect(call.speech.spoken).toEqual([]);
    await call.hangup();
    await call.over();
  });

  it('charges together with the event of its start', async () => {
    const call = await placed();
    await call.bridge();
    const { playbackId } = await call.play('agent', 'customer');
    const events = await listCallEvents(database.sql, { callId: call.callId });
    expect(events.filter(({ event }) => event === 'playback.started').map(({ data }) => data)).toEqual([
      { playback_id: playbackId, legs: ['agent', 'customer'], characters: 12 },
    ]);
    const { rows } = await listUsage(
      database.sql,
      { workspaceId: call.caller.workspaceId, service: 'tts' },
      { page: 1, limit: 10 },
    );
    expect(rows.map(({ operation, quantity }) => [operation, Number(quantity)])).toEqual([['call_play', 12]]);
    await call.hangup();
    await call.over();
  });
});
