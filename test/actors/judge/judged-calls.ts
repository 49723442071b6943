import type { Sql } from '../../../storage/database.ts';
import { inTransaction } from '../../../storage/database.ts';
import { setPrice } from '../../../storage/price-book.ts';
import type { CallRow } from '../../../storage/queries/calls.ts';
import { addSegment, concludeTranscript, openTranscript } from '../../../storage/queries/transcripts.ts';
import { finish } from '../../http/seed-calls.ts';
import { later, NOW } from '../../storage/seed.ts';
import { type Caller, seedCaller } from '../seeds.ts';

/** An owner in a workspace where only tokens cost money, 0.00002 USD each. */
export async function seedJudge(sql: Sql, { balanceNano }: { balanceNano?: bigint } = {}): Promise<Caller> {
  const caller = await seedCaller(sql, { ...(balanceNano !== undefined && { balanceNano }), channels: 1_000 });
  const scope = { workspaceId: caller.workspaceId };
  await setPrice(sql, { scope, item: 'stt', value: 0n, now: NOW });
  return caller;
}

/** Successive finished calls of the caller. In each, the agent says one text, or nothing for ''. */
export async function seedTalks(sql: Sql, caller: Caller, texts: readonly string[]): Promise<CallRow[]> {
  const calls: CallRow[] = [];
  for (const [index, text] of texts.entries()) {
    const whose = { createdByUserId: caller.userId, transcribe: true };
    const call = await caller.admit({ ...whose, now: later(index) });
    calls.push(call);
    const { callId } = call;
    await openTranscript(sql, { callId, now: NOW });
    const segment = { leg: 'agent', utteranceId: 1, text, language: 'en', startMs: 500, endMs: 1_500 } as const;
    if (text !== '') {
      const said = { segment: { ...segment, confidence: null, words: [] }, eventSequence: null, now: NOW };
      await inTransaction(sql, (tx) => addSegment(tx, call, said));
    }
    await concludeTranscript(sql, { callId, late: [], error: null, now: NOW });
    await finish({ sql }, callId);
  }
  return calls;
}
