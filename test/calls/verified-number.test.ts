import { createHash, randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { apiClient } from '../../bin/cli/api-client.ts';
import { topUp } from '../../storage/ledger.ts';
import { createApiKey } from '../../storage/queries/api-keys.ts';
import { createTrunk } from '../../storage/queries/trunks.ts';
import { createWorkspace } from '../../storage/queries/workspaces.ts';
import { eventually } from '../eventually.ts';
import { startBaresip } from '../peers/baresip.ts';
import { peerAvailable } from '../peers/programs.ts';
import { DID, type Platform, startPlatform } from './platform.ts';

/** A softphone stands for the telephone network, and baresip calls back from it. */

let platform: Platform;
beforeAll(async () => {
  platform = await startPlatform({ env: { TRUNK_ALLOW_CIDRS: '127.0.0.0/8' } });
});
afterAll(async () => {
  await platform[Symbol.asyncDispose]();
});

const clean: (() => PromiseLike<unknown>)[] = [];
afterEach(async () => {
  for (const step of clean.splice(0).reverse()) await step();
});

interface Verification {
  id: string;
  status: string;
  failure: string | null;
}

/** A workspace whose trunk claims a number. */
async function claimant(e164: string) {
  const { sql, tandem } = platform;
  const now = new Date();
  const owner = { email: `${randomUUID()}@example.com`, passwordHash: null };
  const { workspace, user } = await createWorkspace(sql, { name: 'Tenant', plan: 'enterprise', owner, now });
  await topUp(sql, {
    ...{
      workspaceId: workspace.id,
      amountNano: 10_000_000_000n,
      paymentType: 'admin_bonus',
      operationKey: workspace.id,
      at: now,
    },
  });
  const key = `sk_${randomUUID()}`;
  await createApiKey(sql, {
    ...{ workspaceId: workspace.id, createdByUserId: user.id, name: 'key', now },
    ...{ prefix: key.slice(0, 7), last4: key.slice(-4), keyHash: createHash('sha256').update(key).digest() },
  });
  const { id: trunkId } = await createTrunk(sql, {
    ...{ id: randomUUID(), workspaceId: workspace.id, name: 'PBX', sipUri: 'sip:127.0.0.1:5099', transport: 'udp' },
    ...{ username: null, passwordEncrypted: null, register: false, codecs: ['PCMU', 'PCMA'], mediaEncryption: 'none' },
    ...{ channels: 5, allowedPrefixes: [], numbers: [e164], defaultCallerId: null, pricePerMinuteNano: 0n, now },
  });
  const api = apiClient({ url: tandem.url, apiKey: key });
  return { api, trunkId };
}

type Claimant = Awaited<ReturnType<typeof claimant>>;

const verify = ({ api, trunkId }: Claimant, e164: string) =>
  api.post<Verification>('/dialer/numbers/verifications', { e164, trunk_id: trunkId });

async function ended({ api }: Claimant, { id }: Verification): Promise<Verification> {
  const read = () => api.get<Verification>(`/dialer/numbers/verifications/${id}`);
  await eventually(async () => expect((await read()).status).not.toBe('calling'));
  return await read();
}

/** Calls in over the trunk and sends these digits until the call ends. */
async function bring(e164: string, keys: string) {
  const caller = await startBaresip({ user: DID });
  clean.push(() => caller.stop());
  const { host, port } = platform.sipAddress;
  await caller.dial(`sip:${e164}@${host}:${port}`);
  await eventually(() => expect(caller.output()).toMatch(/Call established/));
  await caller.press(keys);
  return caller;
}

describe.skipIf(!peerAvailable('baresip'))('verification of a number', () => {
  it('succeeds when the code sent to the number returns over the trunk', async () => {
    const e164 = '+911140000077';
    const network = await platform.phone(e164);
    const tenant = await claimant(e164);
    await expect(tenant.api.post('/dialer/numbers', { e164 })).rejects.toMatchObject({ code: 'NUMBER_NOT_VERIFIED' });
    const verification = await verify(tenant, e164);
    expect(verification).toMatchObject({ status: 'calling', failure: null });
    expect((await network.until('invite')).from).toBe(DID);
    await network.untilReceived(({ digits }) => digits.length >= 8);
    const caller = await bring(e164, network.received().digits.slice(0, 8));
    expect(await ended(tenant, verification)).toMatchObject({ status: 'verified', failure: null });
    await eventually(() => expect(caller.output()).toMatch(/terminated/));
    network.hangup();
    expect(await tenant.api.post('/dialer/numbers', { e164 })).toMatchObject({ e164, status: 'assigned' });
  });

  it('fails when another code returns', async () => {
    const e164 = '+911140000078';
    const network = await platform.phone(e164);
    const tenant = await claimant(e164);
    const verification = await verify(tenant, e164);
    await network.untilReceived(({ digits }) => digits.length >= 8);
    const digits = network.received().digits.slice(0, 8);
    await bring(e164, [...digits].map((digit) => (Number(digit) + 1) % 10).join(''));
    network.hangup();
    expect(await ended(tenant, verification)).toMatchObject({ status: 'failed', failure: 'code_not_heard' });
  });

  it.each([
    { status: 486, failure: 'busy' },
    { status: 480, failure: 'not_answered' },
    { status: 404, failure: 'refused' },
  ])('fails with $failure when the number responds $status', async ({ status, failure }) => {
    const e164 = `+9111400001${status % 100}`.padEnd(13, '0');
    const network = await platform.phone(e164, { answer: 'manual' });
    const tenant = await claimant(e164);
    const verification = await verify(tenant, e164);
    await network.until('ringing');
    network.reject(status);
    expect(await ended(tenant, verification)).toMatchObject({ status: 'failed', failure });
  });
});
