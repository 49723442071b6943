import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { charge, growHold, refund, settleHold } from '../../storage/ledger.ts';
import { costAt } from '../../storage/price-book.ts';
import { later, seedTrunk, seedWorkspace, USD } from '../storage/seed.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { finish, initiate, seedCall } from './seed-calls.ts';

let fixture: HttpFixture;
let owner: Member;
let admin: Member;
let stranger: Member;
let workspaceId: string;

beforeAll(async () => {
  fixture = await createHttpFixture();
  workspaceId = (await seedWorkspace(fixture.sql)).workspace.id;
  owner = await fixture.addMemberWith('owner', workspaceId);
  admin = await fixture.addMemberWith('admin', workspaceId);
  stranger = await fixture.addMemberWith('owner', (await seedWorkspace(fixture.sql)).workspace.id);
  await seedTrunk(fixture.sql, { workspaceId, channels: 20 });
});
afterAll(() => fixture[Symbol.asyncDispose]());

const ledgerOf = (id: string, as: Member, query = '') =>
  fixture.call('GET', `/dialer/click2call/${id}/ledger${query}`, { as });

describe('ledger of a call', () => {
  it('lists the hold, its growth and release, charges and refunds, with totals', async () => {
    const { sql } = fixture;
    const { callId, holdId } = await seedCall(fixture, { by: owner, referenceId: 'paid' });
    await growHold(sql, {
      ...{ holdId: holdId!, wantedTotalNano: USD / 5n, operationKey: `call:${callId}:grow:1`, at: later(1_000) },
    });
    const cost = costAt({ service: 'tts', count: 10, unitPriceNano: USD / 100_000n });
    const by = { apiKeyId: null, userId: owner.userId };
    const played = { ...cost, ...by, workspaceId, resourceId: callId, at: later(2_000) };
    const key = `call:${callId}:play_1`;
    await charge(sql, {
      ...{ ...played, amountNano: USD / 1000n, operation: 'call_play', operationKey: key },
      description: 'Text of <b>10</b> characters',
    });
    const other = { ...played, resourceId: 'somebody else', amountNano: USD, operation: 'call_play' };
    await charge(sql, { ...other, operationKey: 'another:call' });
    await refund(sql, { workspaceId, reversesOperationKey: key, operationKey: `${key}:refund`, at: later(3_000) });
    expect((await ledgerOf(callId, owner)).body.data).toMatchObject({ charged_usd: 0, held_usd: 0.2 });
    const usage = { ...costAt({ service: 'call', count: 30, unitPriceNano: USD / 10n }), ...by, resourceId: callId };
    await settleHold(sql, {
      ...{ holdId: holdId!, amountNano: USD / 20n, operationKey: `call:${callId}:settle`, at: later(4_000) },
      ...{ usage: { ...usage, operation: 'click2call' }, description: 'Call, 30 s' },
    });

    const { status, body } = await ledgerOf('paid', owner);
    expect(status).toBe(200);
    expect(body.data).toMatchObject({ call_id: callId, charged_usd: 0.05, held_usd: 0, pagination: { total: 5 } });
    const rows = (body.data.entries as Record<string, unknown>[]).map((entry) => [
      ...[entry.kind, entry.operation, entry.amount_usd, entry.available_change_usd, entry.held_change_usd],
    ]);
    expect(rows).toEqual([
      ['hold', null, 0.135, -0.135, 0.135],
      ['hold_grow', null, 0.065, -0.065, 0.065],
      ['charge', 'call_play', 0.001, -0.001, 0],
      ['refund', 'call_play', 0.001, 0.001, 0],
      ['settle', 'click2call', 0.05, 0.15, -0.2],
    ]);
    expect(body.data.entries[2]).toMatchObject({
      ...{ operation_key: key, description: 'Text of <b>10</b> characters', created_at: later(2_000).toISOString() },
    });
    const page = await ledgerOf('paid', owner, '?page=2&limit=3');
    expect(page.body.data.entries.map(({ kind }: { kind: string }) => kind)).toEqual(['refund', 'settle']);
    expect(page.body.data.charged_usd).toBe(0.05);
  });

  it('shows the released hold of a call that cost nothing', async () => {
    const { callId } = await seedCall(fixture, { by: owner, referenceId: 'free' });
    await initiate(fixture, callId);
    await finish(fixture, callId);
    const { body } = await ledgerOf(callId, owner);
    expect(body.data).toMatchObject({ charged_usd: 0, held_usd: 0 });
    expect(body.data.entries.at(-1)).toMatchObject({ kind: 'void', amount_usd: 0.135, held_change_usd: -0.135 });
  });

  it('admits only owners, and answers 404 to other workspaces', async () => {
    expect((await ledgerOf('free', admin)).body.code).toBe('FORBIDDEN');
    expect((await ledgerOf('free', stranger)).body.code).toBe('CALL_NOT_FOUND');
    for (const query of ['?page=-1', '?limit=0', '?page=x', '?other=1']) {
      expect((await ledgerOf('free', owner, query)).status, query).toBe(400);
    }
  });
});
