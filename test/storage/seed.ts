import { randomUUID } from 'node:crypto';
import type { SqlOrTx } from '../../storage/database.ts';
import { topUp } from '../../storage/ledger.ts';
import type { AdmitCallInput, SettleCallInput } from '../../storage/queries/calls.ts';
import { verifyNumber } from '../../storage/queries/number-claims.ts';
import { rentNumber } from '../../storage/queries/numbers.ts';
import { type CreateTrunkInput, createTrunk, type TrunkRow } from '../../storage/queries/trunks.ts';
import { createWorkspace, type UserRow, type WorkspaceRow } from '../../storage/queries/workspaces.ts';

export const NOW = new Date('2026-01-02T03:04:05.678Z');
export const USD = 1_000_000_000n;

export function later(ms: number): Date {
  return new Date(NOW.getTime() + ms);
}

export async function seedWorkspace(
  sql: SqlOrTx,
  { balanceNano = 10n * USD, name = 'Acme' }: { balanceNano?: bigint; name?: string } = {},
): Promise<{ workspace: WorkspaceRow; user: UserRow }> {
  const owner = { email: `${randomUUID()}@example.com`, passwordHash: null };
  const made = await createWorkspace(sql, { name, plan: 'enterprise', owner, now: NOW });
  if (balanceNano > 0n) {
    await topUp(sql, {
      workspaceId: made.workspace.id,
      amountNano: balanceNano,
      paymentType: 'admin_bonus',
      operationKey: `seed:${made.workspace.id}`,
      at: NOW,
    });
  }
  return made;
}

/** A trunk at 0.06 USD a minute (0.001 USD a second), whose first number the workspace rents. */
export async function seedTrunk(
  sql: SqlOrTx,
  { workspaceId, ...overrides }: { workspaceId: string } & Partial<CreateTrunkInput>,
): Promise<TrunkRow> {
  const trunk = await createTrunk(sql, {
    id: randomUUID(),
    workspaceId,
    name: 'Carrier',
    sipUri: 'sip:127.0.0.1:5070',
    transport: 'udp',
    username: null,
    passwordEncrypted: null,
    register: false,
    codecs: ['PCMU', 'PCMA'],
    mediaEncryption: 'none',
    channels: 10,
    allowedPrefixes: [],
    numbers: ['+911140000001', '+911140000002', '+911140000003'],
    defaultCallerId: null,
    pricePerMinuteNano: 60_000_000n,
    now: NOW,
    ...overrides,
  });
  for (const e164 of trunk.numbers) {
    await verifyNumber(sql, { e164, trunkId: trunk.id, by: 'operator', now: NOW });
  }
  const first = trunk.numbers[0];
  if (first !== undefined) await rentNumber(sql, { workspaceId, e164: first, now: NOW });
  return { ...trunk, unverifiedNumbers: [] };
}

export function admission(overrides: Partial<AdmitCallInput> & { workspaceId: string }): AdmitCallInput {
  return {
    callId: randomUUID(),
    placedVia: 'api_key',
    apiKeyId: null,
    apiKeyName: null,
    createdByUserId: null,
    trunkId: null,
    did: null,
    agentNumber: '+919810000001',
    customerNumber: '+919810000002',
    referenceId: `qc2c-${randomUUID()}`,
    callbackUrl: null,
    callbackSecretEncrypted: null,
    callbackSecretLast4: null,
    agentRingTimeoutS: 30,
    customerRingTimeoutS: 45,
    maxDurationS: 3600,
    record: false,
    metadata: null,
    ownerNode: 'node-1',
    ownerBoot: 'boot-1',
    now: NOW,
    ...overrides,
  };
}

/** The end of a call that has talked from `NOW` on. */
export function settlement(callId: string, overrides: Partial<SettleCallInput> = {}): SettleCallInput {
  const { talkSeconds = 0, hangupCause = 'NORMAL_CLEARING', endTime = later(talkSeconds * 1_000) } = overrides;
  const last = { event: 'call.completed', state: 'completed', leg: null, sipStatus: null, detail: null } as const;
  return {
    ...{ callId, ownerBoot: 'boot-1', move: { ...last, hangupCause, at: endTime } },
    ...{ terminalEvent: 'call.completed', hangupCause, leg: null, error: null, errorDetail: null },
    ...{ answerTime: NOW, endTime, talkSeconds, legSeconds: 0, totalSeconds: talkSeconds },
    ...{ quality: null, recordingId: null, delivery: null },
    ...overrides,
  };
}

/** Inserts calls that have ended, `atOnce` per minute. Every fifth failed. */
export async function seedEndedCalls(
  sql: SqlOrTx,
  { workspaceId, trunkId, calls, atOnce = 1 }: { workspaceId: string; trunkId: string; calls: number; atOnce?: number },
): Promise<void> {
  // The count per second of placements is for recent ones, and takes longer for each row of one transaction.
  await sql`alter table calls disable trigger calls_placement_count`;
  await sql`
    insert into calls (call_id, workspace_id, reference_id, trunk_id, did, agent_number, customer_number, state, seq,
      terminal_event, hangup_cause, talk_seconds, metadata, quality, cost_nano, agent_ring_timeout_s,
      customer_ring_timeout_s, max_duration_s, price_per_minute_nano, placed_via, owner_node, owner_boot, created_at)
    select 'call_' || n, ${workspaceId}, 'ref-' || n, ${trunkId}, '+911140000001', '+9198100' || lpad((n % 50)::text, 5, '0'),
      '+9198' || lpad(n::text, 8, '0'), case when n % 5 = 0 then 'failed' else 'completed' end, 8,
      case when n % 5 = 0 then 'call.not_answered' else 'call.completed' end,
      case when n % 5 = 0 then 'USER_BUSY' else 'NORMAL_CLEARING' end, case when n % 5 = 0 then 0 else n % 300 end,
      json_build_object('order', n, 'note', 'a customer of the north'),
      jsonb_build_object('agent', jsonb_build_object('mos', 4.2), 'customer', jsonb_build_object('mos', 3 + n % 10 / 10.0)),
      1000000, 30, 45, 3600, 60000000, 'session', 'node', 'boot', timestamptz '2025-01-01' + n / ${atOnce} * interval '1 minute'
    from generate_series(1, ${calls}) n`;
  await sql`alter table calls enable trigger calls_placement_count`;
  await sql`analyze calls`;
}
