import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { claimIdempotentRequest, completeIdempotentRequest } from '../../storage/queries/idempotent-requests.ts';
import { createSecretBox } from '../../storage/secrets.ts';
import { eventually } from '../eventually.ts';
import { onEveryServer } from './every-server.ts';

const REQUEST = { workspaceId: null, owner: 'user 1', operation: 'POST /x', key: 'k', fingerprint: 'f' };
const LEASE_MS = 1_500;
const secrets = createSecretBox(Buffer.alloc(32, 9));

onEveryServer('claimed request', (database) => {
  const claim = () => claimIdempotentRequest(database().sql, REQUEST, { secrets, leaseMs: LEASE_MS });

  it('belongs to its process while that lives, and to the next after kill -9', async () => {
    const program = join(import.meta.dirname, 'idempotent-process.ts');
    const child = fork(program, [database().url, String(LEASE_MS), JSON.stringify(REQUEST)]);
    onTestFinished(() => void child.kill('SIGKILL'));
    const [id] = (await once(child, 'message')) as [string];
    const [request] = await database().sql<{ leasedUntil: Date }[]>`select leased_until from idempotent_requests`;
    const first = request!.leasedUntil;
    // Renewed past the end of its first lease.
    await eventually(async () => {
      const [row] = await database().sql`select now() > ${first} as is_over from idempotent_requests`;
      expect(row?.isOver).toBe(true);
    });
    expect(await claim()).toEqual({ outcome: 'running' });
    child.kill('SIGKILL');
    await eventually(async () => expect(await claim()).toMatchObject({ outcome: 'run', id }));
  });

  it('accepts completion by the latest attempt only', async () => {
    const { sql } = database();
    const response = { status: 201, headers: {}, body: 'second', requestId: 'r' };
    const first = await claimIdempotentRequest(sql, REQUEST, { secrets, leaseMs: 0 });
    const second = await claim();
    if (first.outcome !== 'run' || second.outcome !== 'run') throw new Error('both attempts should run');
    const record = { fingerprint: REQUEST.fingerprint, response };
    expect(await completeIdempotentRequest(sql, { ...first, ...record }, { secrets })).toBe(false);
    expect(await completeIdempotentRequest(sql, { ...second, ...record }, { secrets })).toBe(true);
    expect(await claim()).toEqual({ outcome: 'done', response });
  });
});
