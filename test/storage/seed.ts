import { randomUUID } from 'node:crypto';
import type { SqlOrTx } from '../../storage/database.ts';
import { topUp } from '../../storage/ledger.ts';
import type { AdmitCallInput } from '../../storage/queries/calls.ts';
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
