import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { walletOf } from '../../storage/ledger.ts';
import { type CallRow, getCallById, settleCall } from '../../storage/queries/calls.ts';
import { listUsage } from '../../storage/queries/usage.ts';
import { recordMoves } from '../storage/record-moves.ts';
import { NOW, settlement } from '../storage/seed.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import { seedCaller } from './seeds.ts';

/** An announcement of 100 characters and a whisper of 50, at 15 USD per million characters. */
const SPEECH_NANO = 2_250_000n;
const ANNOUNCE_NANO = 1_500_000n;
const SECOND_NANO = 1_000_000n;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

describe('empty wallet in a call with announcement and whisper', () => {
  it.each([
    ['pays all speech when the talk stays within its funding', 10n, 10, [ANNOUNCE_NANO, 750_000n], 'billed'],
    ['pays for speech with what an overrunning talk left', 10n, 11, [1_250_000n, 0n], 'failed'],
    ['pays nothing for speech when the talk took everything', 0n, 5, [0n, 0n], 'failed'],
  ] as const)('%s', async (_, fundedSeconds, talkSeconds, [announce, whisper], billingStatus) => {
    const balanceNano = SPEECH_NANO + fundedSeconds * SECOND_NANO;
    const caller = await seedCaller(database.sql, { balanceNano });
    const row = await callWithSpeech(caller);
    expect(await wallet(row)).toMatchObject({ availableNano: 0n, heldNano: balanceNano });
    const owed = BigInt(talkSeconds) * SECOND_NANO;
    const costNano = owed < balanceNano ? owed : balanceNano;

    await settle(row, talkSeconds);
    const settled = await getCallById(database.sql, row.callId);
    expect(settled).toMatchObject({ costNano, speechCostNano: announce + whisper, billingStatus });
    const after = await wallet(row);
    expect(after).toMatchObject({ availableNano: balanceNano - costNano - announce - whisper, heldNano: 0n });
    expect(await usage(row)).toEqual([
      ['announce', 100],
      ['click2call', Number((talkSeconds / 60).toFixed(9))],
      ['whisper', 50],
    ]);
    expect(await settle(row, talkSeconds)).toBeNull();
    expect(await wallet(row)).toEqual(after);
  });

  it('pays for further legs before speech, as far as the money reaches', async () => {
    const caller = await seedCaller(database.sql, { balanceNano: SPEECH_NANO + 10n * SECOND_NANO });
    const row = await callWithSpeech(caller);
    await settle(row, 8, 3);
    expect(await getCallById(database.sql, row.callId)).toMatchObject({
      costNano: 8n * SECOND_NANO,
      legSeconds: 3,
      legsCostNano: 3n * SECOND_NANO,
      speechCostNano: SPEECH_NANO - SECOND_NANO,
      billingStatus: 'failed',
    });
    expect(await usage(row)).toContainEqual(['call_legs', 0.05]);
    expect(await wallet(row)).toMatchObject({ availableNano: 0n, heldNano: 0n });
  });

  it('shows legs and speech that the wallet covered in part or not at all in the usage log', async () => {
    const caller = await seedCaller(database.sql, { balanceNano: SPEECH_NANO + 10n * SECOND_NANO });
    const row = await callWithSpeech(caller);
    await settle(row, 10, 2);
    const { rows } = await listUsage(database.sql, { workspaceId: row.workspaceId }, { page: 1, limit: 10 });
    expect(rows.map(({ operation, amountNano, status }) => [operation, amountNano, status])).toEqual([
      ['whisper', 0n, 'failed'],
      ['announce', SPEECH_NANO - 2n * SECOND_NANO, 'partial'],
      ['call_legs', 2n * SECOND_NANO, 'succeeded'],
      ['click2call', 10n * SECOND_NANO, 'succeeded'],
    ]);
  });

  it('pays only for speech that was played', async () => {
    const caller = await seedCaller(database.sql, { balanceNano: SPEECH_NANO });
    const row = await callWithSpeech(caller, { announced: true });
    await settle(row, 0);
    expect(await getCallById(database.sql, row.callId)).toMatchObject({
      ...{ costNano: null, speechCostNano: ANNOUNCE_NANO, billingStatus: 'billed' },
    });
    expect(await wallet(row)).toMatchObject({ availableNano: SPEECH_NANO - ANNOUNCE_NANO, heldNano: 0n });
  });
});

async function callWithSpeech(
  caller: Awaited<ReturnType<typeof seedCaller>>,
  said: { announced?: boolean; whispered?: boolean } = { announced: true, whispered: true },
): Promise<CallRow> {
  const row = await caller.admit({ announceCharacters: 100, whisperCharacters: 50 });
  const move = { event: 'call.bridged', state: 'bridged', leg: null, sipStatus: null, hangupCause: null } as const;
  await recordMoves(database.sql, row.callId, [{ ...move, detail: null, at: NOW }], { answerTime: NOW, ...said });
  return row;
}

async function settle({ callId }: CallRow, talkSeconds: number, legSeconds = 0) {
  return await settleCall(database.sql, settlement(callId, { talkSeconds, legSeconds }));
}

async function wallet({ workspaceId }: CallRow) {
  return await walletOf(database.sql, workspaceId);
}

async function usage({ workspaceId }: CallRow) {
  const { rows } = await listUsage(database.sql, { workspaceId }, { page: 1, limit: 10 });
  return rows.map(({ operation, quantity }) => [operation, Number(quantity)]).sort();
}
