import { afterAll, beforeAll, beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { openCallQualityLog } from '../../actors/call-quality.ts';
import type { LegSample } from '../../media/media-plane.ts';
import type { Sql } from '../../storage/database.ts';
import { qualitySamplesOf } from '../../storage/queries/call-quality.ts';
import { eventually } from '../eventually.ts';
import { fakeSql } from '../storage/fake-sql.ts';
import { NOW } from '../storage/seed.ts';
import { createTestDatabase } from '../storage/test-database.ts';
import { createTestClock, createTestLogger } from './fakes.ts';
import { seedCaller } from './seeds.ts';

const SAMPLE: LegSample = { packetsReceived: 250, packetsLost: 1, jitterMs: 1.25, roundTripMs: null, mos: 4.3 };
let database: Awaited<ReturnType<typeof createTestDatabase>>;
let sql: Sql;
let callId: string;

beforeAll(async () => {
  database = await createTestDatabase();
  sql = database.sql;
});
afterAll(() => database.drop());
beforeEach(async () => {
  callId = (await (await seedCaller(sql)).admit()).callId;
});

function open(usedSql: Sql = sql) {
  const clock = createTestClock();
  const logger = createTestLogger();
  const log = openCallQualityLog({ sql: usedSql, clock, logger });
  onTestFinished(() => log[Symbol.asyncDispose]());
  const abort = new AbortController();
  const media = {
    taken: 0,
    sampled: { agent: SAMPLE, customer: null } as Record<string, LegSample | null>,
    async sampleQuality() {
      media.taken += 1;
      return media.sampled;
    },
  };
  const watch = log.watch({ callId, media, signal: abort.signal });
  const nextSample = async () => {
    const taken = media.taken;
    clock.advance(5_000);
    await eventually(() => expect(media.taken).toBe(taken + 1));
    await eventually(() => expect(clock.waiting()).toContain(5_000));
  };
  return { log, clock, logger, abort, media, watch, nextSample };
}

const secondsOf = async () =>
  (await qualitySamplesOf(sql, callId)).map(({ leg, at }) => [leg, (at.getTime() - NOW.getTime()) / 1_000]);

describe('quality log of a call', () => {
  it('samples each sending leg every 5 seconds, and stores samples every 15 seconds', async () => {
    const { nextSample, media, clock } = open();
    await nextSample();
    media.sampled = { agent: { ...SAMPLE, mos: null, roundTripMs: 12.5 }, customer: SAMPLE };
    await nextSample();
    expect(await secondsOf()).toEqual([]);
    await nextSample();
    clock.advance(4_999);
    expect(await secondsOf()).toEqual([]);
    clock.advance(1);
    await eventually(async () => expect((await secondsOf()).length).toBeGreaterThanOrEqual(5));
    // A sample due together with the insert may miss it.
    expect((await secondsOf()).filter(([, seconds]) => Number(seconds) <= 15)).toEqual([
      ['agent', 5],
      ['agent', 10],
      ['agent', 15],
      ['customer', 10],
      ['customer', 15],
    ]);
    const [first, second] = await qualitySamplesOf(sql, callId);
    expect(first).toMatchObject({ callId, at: new Date(NOW.getTime() + 5_000), ...SAMPLE });
    expect(second).toMatchObject({ mos: null, roundTripMs: 12.5 });
  });

  it('takes a final sample, stores it soon, and stops', async () => {
    const { clock, watch, media } = open();
    clock.advance(3_000);
    await watch.end();
    await watch.end();
    expect(clock.waiting()).toEqual([500]);
    clock.advance(500);
    await eventually(async () => expect(await secondsOf()).toEqual([['agent', 3]]));
    clock.advance(60_000);
    expect(media.taken).toBe(1);
  });

  it('stops with the call, and tolerates a lost media worker', async () => {
    const { clock, abort, watch, media } = open();
    media.sampleQuality = async () => {
      throw new Error('the worker is gone');
    };
    await watch.end();
    abort.abort();
    expect(clock.waiting()).toEqual([]);
    expect(await secondsOf()).toEqual([]);
  });

  it('stores remaining samples on close, except for deleted calls', async () => {
    const { log, nextSample } = open();
    await nextSample();
    const media = { sampleQuality: async () => ({ agent: SAMPLE }) };
    await log.watch({ callId: 'call_deleted', media, signal: new AbortController().signal }).end();
    await log[Symbol.asyncDispose]();
    expect(await secondsOf()).toEqual([['agent', 5]]);
    expect(await sql`select 1 from call_quality_samples where call_id = 'call_deleted'`).toHaveLength(0);
  });

  it('drops samples that the database rejects, and continues', async () => {
    const gone = () => Promise.reject(new Error('the database is gone'));
    const { log, logger, nextSample } = open(fakeSql(gone));
    await nextSample();
    await log.flush();
    expect(log.dump()).toEqual({ waiting: 0, lost: 1 });
    expect(logger.messages('warn')).toEqual(['quality samples could not be stored']);
    await nextSample();
    expect(log.dump()).toEqual({ waiting: 1, lost: 1 });
  });
});
