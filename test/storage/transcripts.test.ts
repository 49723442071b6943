import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import type { CallSegment } from '../../machines/events.ts';
import { inTransaction, type Sql } from '../../storage/database.ts';
import { walletOf } from '../../storage/ledger.ts';
import { setPrice } from '../../storage/price-book.ts';
import { admitCall, type CallRow, listCallEvents } from '../../storage/queries/calls.ts';
import {
  addSegment,
  concludeTranscript,
  failAbandonedTranscripts,
  failTranscript,
  getTranscript,
  openTranscript,
} from '../../storage/queries/transcripts.ts';
import { onEveryServer } from './every-server.ts';
import { recordMoves } from './record-moves.ts';
import { admission, later, NOW, seedTrunk, seedWorkspace, USD } from './seed.ts';

onEveryServer('call transcripts', (database) => {
  it('store segments with the event that reported them, and charge each utterance once', async () => {
    const { sql, call } = await transcribedCall(database().sql);
    const said = segment(1, { confidence: 0.125, words: [{ word: 'hello', startMs: 1, endMs: 2, confidence: null }] });
    await storeSegment(sql, call, said);
    const events = await listCallEvents(sql, { callId: call.callId });
    expect(events.map((event) => event.segment)).toEqual([
      null,
      { text: 'sentence 1', startMs: 1_000, endMs: 2_500, confidence: 0.125 },
    ]);
    const { utteranceId: _, ...stored } = said;
    expect((await getTranscript(sql, call.callId))?.segments).toEqual([
      { ...stored, callId: call.callId, sequence: 1, eventSequence: 2 },
    ]);
    // 1.5 s of speech at 0.006 USD a minute.
    expect(await spent(sql, call)).toBe(150_000n);
    await expect(storeSegment(sql, call, said)).resolves.toBe('stored');
    expect(await spent(sql, call)).toBe(150_000n);
  });

  it('cost the price of the workspace', async () => {
    const { sql, call } = await transcribedCall(database().sql);
    await setPrice(sql, { scope: { workspaceId: call.workspaceId }, item: 'stt', value: 60_000_000n, now: NOW });
    await storeSegment(sql, call, segment(1));
    expect(await spent(sql, call)).toBe(1_500_000n);
  });

  it('fail when the wallet is empty, without a further charge', async () => {
    const { sql, call } = await transcribedCall(database().sql, { leftNano: 150_000n });
    expect(await storeSegment(sql, call, segment(1))).toBe('stored');
    expect(await storeSegment(sql, call, segment(2))).toBe('unpaid');
    expect(await storeSegment(sql, call, segment(3))).toBe('over');
    expect(await getTranscript(sql, call.callId)).toMatchObject({
      transcript: { status: 'failed', error: 'INSUFFICIENT_FUNDS' },
      segments: [{ text: 'sentence 1' }],
    });
  });

  it('fail once with the first reason, and stay failed', async () => {
    const { sql, call } = await transcribedCall(database().sql);
    const fail = (error: string) => failTranscript(sql, { callId: call.callId, error, now: later(1) });
    expect([await fail('OVERLOADED'), await fail('INTERNAL')]).toEqual([true, false]);
    await concludeTranscript(sql, { callId: call.callId, late: [segment(1)], error: null, now: later(2) });
    expect(await getTranscript(sql, call.callId)).toMatchObject({
      transcript: { status: 'failed', error: 'OVERLOADED', updatedAt: later(1) },
      segments: [],
    });
  });

  it('can fail before they start', async () => {
    const { sql, call } = await transcribedCall(database().sql, { opened: false });
    expect(await failTranscript(sql, { callId: call.callId, error: 'INTERNAL', now: NOW })).toBe(true);
    expect((await getTranscript(sql, call.callId))?.transcript.error).toBe('INTERNAL');
  });

  it('conclude once, including late segments', async () => {
    const { sql, call } = await transcribedCall(database().sql);
    const conclusion = {
      callId: call.callId,
      late: [segment(1), segment(2, { leg: 'agent', startMs: 10 })],
      error: null,
    };
    for (const at of [NOW, later(5_000)]) await concludeTranscript(sql, { ...conclusion, now: at });
    const stored = await getTranscript(sql, call.callId);
    expect(stored?.transcript).toMatchObject({ status: 'completed', updatedAt: NOW });
    expect(stored?.segments.map(({ leg, sequence, eventSequence }) => [leg, sequence, eventSequence])).toEqual([
      ['agent', 2, null],
      ['customer', 1, null],
    ]);
  });

  it('fail by their own node when abandoned after the call', async () => {
    const { sql, call } = await transcribedCall(database().sql);
    const abandoned = (node: string) =>
      failAbandonedTranscripts(sql, { lost: { node, exceptBoot: 'the next boot' }, callIds: [], now: later(9) });
    expect(await abandoned(call.ownerNode)).toBe(0);
    await sql`update calls set state = 'completed' where call_id = ${call.callId}`;
    expect([await abandoned('another node'), await abandoned(call.ownerNode), await abandoned(call.ownerNode)]).toEqual(
      [0, 1, 0],
    );
    expect((await getTranscript(sql, call.callId))?.transcript).toMatchObject({
      status: 'failed',
      error: 'INTERRUPTED',
    });
  });

  it('let a node of the previous version continue its calls', async () => {
    const { sql, call } = await transcribedCall(database().sql, { opened: false });
    const { transcribeRequested: _, ...older } = call;
    const row = { ...older, callId: 'older', referenceId: 'older', holdId: null };
    await sql`insert into calls ${sql({ ...row, metadata: null, legs: [], quality: null })}`;
    const [stored] = await sql<CallRow[]>`select * from calls where call_id = 'older'`;
    expect(stored?.transcribeRequested).toBe(false);
  });
});

/** A transcribed call in a workspace with `leftNano` beyond the call's hold. */
async function transcribedCall(
  sql: Sql,
  { leftNano = USD, opened = true }: { leftNano?: bigint; opened?: boolean } = {},
) {
  // The hold covers 135 s at 0.001 USD.
  const { workspace } = await seedWorkspace(sql, { balanceNano: 135_000_000n + leftNano });
  await seedTrunk(sql, { workspaceId: workspace.id });
  const input = admission({ workspaceId: workspace.id, callId: randomUUID(), transcribe: true });
  const { call } = await admitCall(sql, input);
  expect(call.transcribeRequested).toBe(true);
  if (opened) await openTranscript(sql, { callId: call.callId, now: NOW });
  return { sql, call };
}

/** Stores a segment with an event, as the call journal does. */
async function storeSegment(sql: Sql, call: CallRow, said: CallSegment) {
  return await inTransaction(sql, async (tx) => {
    const [{ seq } = { seq: 0 }] = await tx<{ seq: number }[]>`
      select seq from calls where call_id = ${call.callId} for no key update`;
    const outcome = await addSegment(tx, call, { segment: said, eventSequence: seq + 1, now: NOW });
    if (outcome !== 'stored') return outcome;
    const move = { event: 'transcript.final', state: 'bridged', leg: null, sipStatus: null } as const;
    await recordMoves(tx, call.callId, [{ ...move, hangupCause: null, detail: null, at: NOW, segment: said }]);
    return outcome;
  });
}

async function spent(sql: Sql, { workspaceId }: CallRow): Promise<bigint> {
  return 135_000_000n + USD - (await walletOf(sql, workspaceId)).balanceNano;
}

function segment(utteranceId: number, more: Partial<CallSegment> = {}): CallSegment {
  const text = `sentence ${utteranceId}`;
  const times = { startMs: utteranceId * 1_000, endMs: utteranceId * 1_000 + 1_500 };
  return { leg: 'customer', utteranceId, text, language: 'en', confidence: 0.5, words: [], ...times, ...more };
}
