import { expect } from 'vitest';
import { reverseTopUp, topUp, walletOf } from '../../storage/ledger.ts';
import { eventually } from '../eventually.ts';
import type { Answer, HttpFixture, Member } from './fixture.ts';

export interface MemoryRequests {
  owner: Member;
  post(url: string, body: unknown, as?: Member): Promise<Answer>;
  get(url: string, as?: Member): Promise<Answer>;
  balance(): Promise<bigint>;
  ready(id: string, as?: Member): Promise<void>;
}

/** Memory requests of the owner of a new workspace with one dollar. */
export async function memoryRequests(fixture: HttpFixture): Promise<MemoryRequests> {
  const owner = await fixture.addWorkspace();
  await fund(fixture, owner, 1_000_000_000n);
  const get = (url: string, as: Member = owner) => fixture.call('GET', url, { as });
  return {
    owner,
    get,
    post: (url, body, as = owner) => fixture.call('POST', url, { as, body }),
    balance: async () => (await walletOf(fixture.sql, owner.workspaceId)).availableNano,
    async ready(id, as = owner) {
      await eventually(async () => {
        expect((await get(`/memory/${id}/status`, as)).body.data.status).toBe('ready');
      });
    },
  };
}

export async function fund({ sql }: HttpFixture, { workspaceId }: Member, amountNano: bigint): Promise<void> {
  await topUp(sql, { workspaceId, amountNano, paymentType: 'one_time', operationKey: `fund:${workspaceId}` });
}

/** Takes back twice what `fund` gave, as a dispute may. */
export async function overdraw({ sql }: HttpFixture, { workspaceId }: Member): Promise<void> {
  const [payment] = await sql<{ id: string; amountNano: bigint }[]>`
    select id, amount_nano from payments where workspace_id = ${workspaceId}`;
  const { id: reversesPaymentId, amountNano } = payment!;
  const what = { workspaceId, paymentType: 'one_time', reversesPaymentId } as const;
  await reverseTopUp(sql, { ...what, amountNano: 2n * amountNano, operationKey: `overdraw:${workspaceId}` });
}
