import { expect, it } from 'vitest';
import { TandemError } from '../../machines/errors.ts';
import * as fc from '../properties.ts';
import { createMemoryFixture, LEASE_MS, textOf } from './memory-fixture.ts';

type Step =
  | 'ingest'
  | 'sweep'
  | 'sweep elsewhere'
  | 'wait'
  | 'fail'
  | 'away'
  | 'back'
  | 'delete'
  | 'retry'
  | 'queue away';
const STEPS: Step[] = [
  'ingest',
  'sweep',
  'sweep elsewhere',
  'wait',
  'fail',
  'away',
  'back',
  'delete',
  'retry',
  'queue away',
];

/** Regression: `sweep` did not wait for attempts that others had started. */
const SWEPT_WHILE_ANOTHER_ARRIVES: [Step, number][] = [
  ['ingest', 0],
  ['sweep', 0],
  ['ingest', 0],
  ['ingest', 10],
];

it('random faults leave each ready memory stored and paid once, and each failed one free', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.tuple(fc.constantFrom(...STEPS), fc.nat(50)), { maxLength: 40 }), async (steps) => {
      await using fixture = await createMemoryFixture();
      const { desk, owner, sql, embedder, queue, time } = fixture;
      const another = await fixture.anotherWorker();
      const started = await fixture.balance();
      const ids: string[] = [];
      const running: Promise<unknown>[] = [];
      const expected = (error: unknown) => {
        if (!(error instanceof TandemError)) throw error;
      };

      for (const [step, which] of steps) {
        const memoryId = ids[which % Math.max(1, ids.length)];
        switch (step) {
          case 'ingest': {
            const ingested = await desk.ingest({ memories: [textOf(`Memory ${which}.`)], by: owner }).catch(expected);
            for (const result of ingested?.results ?? []) if (result.outcome === 'queued') ids.push(result.id);
            break;
          }
          case 'sweep':
            running.push(fixture.worker.sweep());
            break;
          case 'sweep elsewhere':
            running.push(another.sweep());
            break;
          case 'wait':
            time.ms += LEASE_MS + which * 1_000;
            break;
          case 'fail':
            embedder.isAway = true;
            for (let attempt = 0; attempt < 13; attempt += 1) await fixture.pass(600_000);
            break;
          case 'away':
          case 'back':
            embedder.isAway = step === 'away';
            break;
          case 'queue away':
            queue.state = queue.state === 'lost' ? 'refusing' : 'lost';
            break;
          case 'delete':
            if (memoryId) running.push(desk.remove({ memoryId, by: owner }).catch(expected));
            break;
          case 'retry':
            if (memoryId) running.push(desk.retry({ memoryId, by: owner }).catch(expected));
            break;
        }
      }
      await Promise.all(running);
      embedder.isAway = false;
      for (let attempt = 0; attempt < 4; attempt += 1) {
        await fixture.pass(600_000);
        await another.sweep();
      }

      const memories = await sql<{ id: string; status: string; isDeleted: boolean; units: number; paidNano: bigint }[]>`
        select m.id, m.status, m.deleted_at is not null as is_deleted,
          (select count(*)::int from memory_units u where u.memory_id = m.id) as units,
          (select coalesce(sum(case when e.kind = 'charge' then e.result_nano else -e.result_nano end), 0)::bigint
            from usage_logs l join entries e on e.id = l.entry_id where l.resource_id = m.id::text) as paid_nano
        from memories m`;
      let paidNano = 0n;
      for (const memory of memories) {
        paidNano += memory.paidNano;
        // `Memory 1.` or `Memory 10.`, at 100 nano-USD per character. An unqueued one was refunded before processing.
        expect([0n, 900n, 1_000n]).toContain(memory.paidNano);
        expect(memory.isDeleted || memory.status === 'ready' || memory.status === 'failed').toBe(true);
        expect(memory.units).toBe(memory.isDeleted ? 0 : 1);
        if (memory.status === 'failed' && !memory.isDeleted) expect(memory.paidNano).toBe(0n);
      }
      expect(started - (await fixture.balance())).toBe(paidNano);
    }),
    { numRuns: 12, examples: [[SWEPT_WHILE_ANOTHER_ARRIVES]] },
  );
}, 120_000);
