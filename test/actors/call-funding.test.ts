import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createActor, toPromise } from 'xstate';
import { fundedMs, fundingPort } from '../../actors/call-funding.ts';
import { createCallRegistry } from '../../actors/call-registry.ts';
import { momentOf } from '../../runtime/clock.ts';
import { heldBy, settleHold, walletOf } from '../../storage/ledger.ts';
import { priceOf } from '../../storage/queries/call-settlement.ts';
import type { AdmitCallInput } from '../../storage/queries/calls.ts';
import * as fc from '../properties.ts';
import { later, USD } from '../storage/seed.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import { createTestClock, liveCall } from './fakes.ts';
import { seedCaller } from './seeds.ts';

const HOUR_MS = 3_600_000;
const USD_PER_SECOND_NANO = 1_000_000n;
/** The admission hold: 30 s and 45 s of ringing, 60 s of talk. */
const HELD_AT_ADMISSION_NANO = 135n * USD_PER_SECOND_NANO;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

describe('funding of a call', () => {
  it('grows the hold to the talk so far, the lead and another minute', async () => {
    const { extend, held, clock } = await bridgedCall();
    expect(await held()).toBe(HELD_AT_ADMISSION_NANO);
    clock.advance(120_000);
    expect(await extend()).toEqual({ fundedForMs: 75_000 });
    expect(await held()).toBe(195n * USD_PER_SECOND_NANO);
    clock.advance(60_000);
    expect(await extend()).toEqual({ fundedForMs: 75_000 });
    expect(await held()).toBe(255n * USD_PER_SECOND_NANO);
  });

  it('rounds talk up to whole seconds', async () => {
    const { extend, held, clock } = await bridgedCall();
    clock.advance(120_001);
    expect(await extend()).toEqual({ fundedForMs: 75_999 });
    expect(await held()).toBe(196n * USD_PER_SECOND_NANO);
  });

  it('never shrinks a larger hold', async () => {
    const { extend, held, clock } = await bridgedCall();
    clock.advance(10_000);
    expect(await extend()).toEqual({ fundedForMs: 125_000 });
    expect(await held()).toBe(HELD_AT_ADMISSION_NANO);
  });

  it('holds at most the maximum duration', async () => {
    const { extend, held, clock } = await bridgedCall({ maxDurationS: 150 });
    clock.advance(120_000);
    expect(await extend()).toEqual({ fundedForMs: 30_000 });
    expect(await held()).toBe(150n * USD_PER_SECOND_NANO);
  });

  it('grows as far as the wallet allows, and reports an empty wallet', async () => {
    const { extend, held, clock, wallet } = await bridgedCall({}, { balanceNano: 150n * USD_PER_SECOND_NANO });
    clock.advance(120_000);
    expect(await extend()).toEqual({ fundedForMs: 30_000 });
    expect(await held()).toBe(150n * USD_PER_SECOND_NANO);
    expect(await wallet()).toMatchObject({ availableNano: 0n });
    clock.advance(30_000);
    expect(await extend()).toEqual({ fundedForMs: 0 });
    clock.advance(5_000);
    expect(await extend()).toEqual({ fundedForMs: 0 });
    expect(await held()).toBe(150n * USD_PER_SECOND_NANO);
  });

  it('funds a call over a free trunk without limit or hold', async () => {
    const { extend, held } = await bridgedCall({}, { pricePerMinuteNano: 0n });
    expect(await extend()).toEqual({ fundedForMs: Number.MAX_SAFE_INTEGER });
    expect(await held()).toBe(0n);
  });

  for (const [direction, stepMs] of [
    ['forward', HOUR_MS],
    ['back', -HOUR_MS],
  ] as const) {
    it(`grows by the monotonic talk time when the wall clock steps ${direction} by an hour`, async () => {
      const { extend, held, clock } = await bridgedCall();
      clock.jumpTo(later(stepMs));
      clock.advance(120_000);
      expect(await extend()).toEqual({ fundedForMs: 75_000 });
      expect(await held()).toBe(195n * USD_PER_SECOND_NANO);
    });
  }

  it('returns the same growth when repeated at the same moment', async () => {
    const { extend, held, clock, entries } = await bridgedCall();
    clock.advance(120_000);
    const first = await extend();
    expect(await extend()).toEqual(first);
    expect(await Promise.all([extend(), extend()])).toEqual([first, first]);
    expect(await held()).toBe(195n * USD_PER_SECOND_NANO);
    expect(await entries()).toEqual(['hold', 'hold_grow']);
  });

  it('reports no funding after the hold is closed', async () => {
    const { extend, clock, call } = await bridgedCall();
    await settleHold(database.sql, { holdId: call.holdId!, amountNano: 0n, operationKey: `test:${call.callId}` });
    clock.advance(1_000);
    expect(await extend()).toEqual({ fundedForMs: 0 });
  });

  it('rejects an unbridged call', async () => {
    const { extend } = await bridgedCall({}, { bridged: false });
    await expect(extend()).rejects.toThrow('only a bridged call is funded');
  });
});

describe('fundedMs', () => {
  it('returns at least the priced duration, and less than one price step more', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 7_200 }),
        fc.bigInt({ min: 1n, max: 1_000n * USD }),
        (seconds, pricePerMinuteNano) => {
          const amountNano = priceOf(seconds, pricePerMinuteNano);
          const paidMs = fundedMs(amountNano, { ...NO_SPEECH, pricePerMinuteNano });
          expect(paidMs).toBeGreaterThanOrEqual(seconds * 1000);
          // One nano-dollar less pays for less time.
          if (amountNano > 0n)
            expect(fundedMs(amountNano - 1n, { ...NO_SPEECH, pricePerMinuteNano })).toBeLessThan(seconds * 1000);
        },
      ),
    );
  });

  it('subtracts the cost of announcement and whisper', () => {
    const speech = { announceCharacters: 100, whisperCharacters: 50, characterPriceNano: 1_000_000n };
    expect(fundedMs(USD, { ...speech, pricePerMinuteNano: USD })).toBe(51_000);
    expect(fundedMs(149_000_000n, { ...speech, pricePerMinuteNano: USD })).toBe(0);
  });

  it('returns zero for zero', () => {
    expect(fundedMs(0n, { ...NO_SPEECH, pricePerMinuteNano: 1n })).toBe(0);
  });
});

async function bridgedCall(
  overrides: Partial<AdmitCallInput> = {},
  { bridged = true, ...caller }: { bridged?: boolean; balanceNano?: bigint; pricePerMinuteNano?: bigint } = {},
) {
  const { sql } = database;
  const clock = createTestClock();
  const call = await (await seedCaller(sql, caller)).admit(overrides);
  const bridgedAt = momentOf(clock);
  const registry = createCallRegistry();
  registry.add(liveCall(call, { bridgedAt: () => (bridged ? bridgedAt : null) }));
  const port = fundingPort({ sql, registry, clock });
  return {
    call,
    clock,
    extend() {
      const actor = createActor(port, { input: { callId: call.callId } });
      // The promise below rejects with the error.
      actor.subscribe({ error: () => {} });
      const answer = toPromise(actor);
      actor.start();
      return answer;
    },
    held: () => heldBy(sql, call.holdId!),
    wallet: () => walletOf(sql, call.workspaceId),
    async entries() {
      const rows = await sql<{ kind: string }[]>`
        select kind from entries where call_id = ${call.callId} order by position`;
      return rows.map(({ kind }) => kind);
    },
  };
}

const NO_SPEECH = { announceCharacters: null, whisperCharacters: null, characterPriceNano: 0n };
