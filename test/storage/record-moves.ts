import { inTransaction, type SqlOrTx } from '../../storage/database.ts';
import { lockLiveCall } from '../../storage/queries/call-moves.ts';
import { type CallMove, type LivePatch, recordMoves as recordMovesOf } from '../../storage/queries/calls.ts';

/** Locks a call and stores its moves, in one transaction. False if the call is final or missing. */
export async function recordMoves(
  sql: SqlOrTx,
  callId: string,
  moves: readonly CallMove[],
  patch?: LivePatch,
): Promise<Awaited<ReturnType<typeof recordMovesOf>> | false> {
  return await inTransaction(sql, async (tx) => {
    const call = await lockLiveCall(tx, callId);
    return call !== null && (await recordMovesOf(tx, call, moves, patch));
  });
}
