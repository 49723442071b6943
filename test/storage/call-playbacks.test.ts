import { expect, it } from 'vitest';
import { inTransaction } from '../../storage/database.ts';
import { walletOf } from '../../storage/ledger.ts';
import { chargePlayback } from '../../storage/queries/call-playbacks.ts';
import { getCallById, settleCall } from '../../storage/queries/calls.ts';
import { listUsage } from '../../storage/queries/usage.ts';
import { seedCaller } from '../actors/seeds.ts';
import { onEveryServer } from './every-server.ts';
import { NOW, settlement } from './seed.ts';

/** 15 USD per million characters. */
const CHARACTER_NANO = 15_000n;

onEveryServer('text playback in a call', (database) => {
  const played = (id: string, characters: number | null) => ({
    data: { playback_id: id, legs: ['agent'], ...(characters !== null && { characters }) },
    now: NOW,
  });

  async function setUp(balanceNano: bigint) {
    const { sql } = database();
    const caller = await seedCaller(sql, { balanceNano });
    const row = await caller.admit({ announceCharacters: null, whisperCharacters: null });
    const play = (id: string, characters: number | null) =>
      inTransaction(sql, (tx) => chargePlayback(tx, row, played(id, characters)));
    const spent = async () => {
      const { rows } = await listUsage(sql, { workspaceId: caller.workspaceId }, { page: 1, limit: 100 });
      return rows.map(({ operation, quantity }) => [operation, Number(quantity)]);
    };
    return { sql, row, play, spent, cost: async () => (await getCallById(sql, row.callId))!.speechCostNano };
  }

  it('charges once at the start and adds to the cost of the call', async () => {
    const { play, spent, cost, row, sql } = await setUp(1_000_000_000n);
    const before = await walletOf(sql, row.workspaceId);
    await play('play_1', 20);
    await play('play_2', 10);
    expect(await cost()).toBe(30n * CHARACTER_NANO);
    expect(await spent()).toEqual([
      ['call_play', 10],
      ['call_play', 20],
    ]);
    const after = await walletOf(sql, row.workspaceId);
    expect(before.availableNano - after.availableNano).toBe(30n * CHARACTER_NANO);
  });

  it('logs usage without a charge if the wallet is empty', async () => {
    const { play, spent, cost } = await setUp(1_000_000_000n);
    await play('play_1', 2_000_000_000);
    expect(await cost()).toBe(0n);
    expect(await spent()).toEqual([['call_play', 2_000_000_000]]);
  });

  it('shows a text that the wallet does not cover as failed in the usage log', async () => {
    const { sql, row, play } = await setUp(1_000_000_000n);
    await play('play_1', 20);
    await play('play_2', 2_000_000_000);
    const { rows } = await listUsage(sql, { workspaceId: row.workspaceId }, { page: 1, limit: 100 });
    expect(rows.map(({ amountNano, status }) => [amountNano, status])).toEqual([
      [0n, 'failed'],
      [20n * CHARACTER_NANO, 'succeeded'],
    ]);
  });

  it('costs nothing for a file', async () => {
    const { play, spent, cost } = await setUp(1_000_000_000n);
    await play('play_1', null);
    expect([await cost(), await spent()]).toEqual([null, []]);
  });

  it('appears on the bill of the call beside the talk', async () => {
    const { sql, row, play } = await setUp(1_000_000_000n);
    await play('play_1', 20);
    const settled = await settleCall(sql, settlement(row.callId, { talkSeconds: 10 }));
    expect(settled?.call).toMatchObject({ speechCostNano: 20n * CHARACTER_NANO, billingStatus: 'billed' });
  });
});
