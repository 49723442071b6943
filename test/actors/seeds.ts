import { randomInt, randomUUID } from 'node:crypto';
import type { Sql } from '../../storage/database.ts';
import { type AdmitCallInput, admitCall, type CallRow } from '../../storage/queries/calls.ts';
import type { CreateTrunkInput } from '../../storage/queries/trunks.ts';
import { recordMoves } from '../storage/record-moves.ts';
import { admission, seedTrunk, seedWorkspace, USD } from '../storage/seed.ts';

/** A workspace with money, a trunk at 0.001 USD per second and a number. */
export interface Caller {
  workspaceId: string;
  userId: number;
  trunkId: string;
  did: string;
  admit(overrides?: Partial<AdmitCallInput>): Promise<CallRow>;
}

export async function seedCaller(
  sql: Sql,
  { balanceNano = 10n * USD, ...trunk }: { balanceNano?: bigint } & Partial<CreateTrunkInput> = {},
): Promise<Caller> {
  const { workspace, user } = await seedWorkspace(sql, { balanceNano });
  const did = `+9111${randomInt(10_000_000, 99_999_999)}`;
  const { id: trunkId } = await seedTrunk(sql, { workspaceId: workspace.id, numbers: [did], ...trunk });
  return {
    workspaceId: workspace.id,
    userId: user.id,
    trunkId,
    did,
    async admit(overrides = {}) {
      const callId = `call_${randomUUID()}`;
      const { call } = await admitCall(sql, admission({ workspaceId: workspace.id, callId, ...overrides }));
      return call;
    },
  };
}

/** Advances an admitted call as its machine would. */
export async function moveTo(
  sql: Sql,
  call: CallRow,
  state: 'initiated' | 'bridged',
  { at, recordingId }: { at: Date; recordingId?: string },
): Promise<void> {
  const event = state === 'bridged' ? 'call.bridged' : 'call.initiated';
  const move = { event, state, leg: null, sipStatus: null, hangupCause: null, detail: null, at };
  await recordMoves(sql, call.callId, [move], {
    ...(state === 'bridged' && { answerTime: at }),
    ...(recordingId !== undefined && { recordingId, recordingStatus: 'recording' as const }),
  });
}
