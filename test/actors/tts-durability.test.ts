import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { failLostStreams } from '../../actors/tts/lost-streams.ts';
import { TandemError } from '../../machines/errors.ts';
import { parseWav } from '../../media/wav.ts';
import { SynthesizerError } from '../../speech/synthesizer.ts';
import { connect } from '../../storage/database.ts';
import { eventually } from '../eventually.ts';
import { later, NOW, USD } from '../storage/seed.ts';
import { createTestLogger, sqlWithFaults } from './fakes.ts';
import { aborted, createTtsDeskFixture, drain, part, type TtsDeskFixture } from './tts-desk-fixture.ts';

let fixture: TtsDeskFixture;

beforeAll(async () => {
  fixture = await createTtsDeskFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());
beforeEach(async () => {
  await fixture.fund(USD);
  fixture.deliverer.enqueued.length = 0;
});

const listening = () => new AbortController().signal;
/** Nine characters at 15 USD per million. */
const COST = 135_000n;
const IN_A_DAY = later(24 * 3_600_000);

async function* twoParts() {
  yield part('one!', 1);
  yield part('two!', 2);
}
async function* breakingOff() {
  yield part('one!');
  throw new SynthesizerError('crashed', 'died');
}
async function* endless(signal: AbortSignal) {
  yield part('one!');
  await aborted(signal);
}

describe('stored synthesis request', () => {
  it('contains owner, cost and voice during synthesis, but not the text', async () => {
    const { desk } = fixture.deskOf(twoParts);
    const { streamId, parts } = await desk.speak(fixture.request, listening());
    const { workspaceId, userId } = fixture.request;
    const [row, ...others] = await fixture.rows();
    expect(others).toEqual([]);
    expect(row).toEqual({
      ...{ id: streamId, workspaceId, userId, apiKeyId: null, voiceId: 'voice-hi', characters: 9, state: 'speaking' },
      ...{ deliveredCharacters: 0, error: null, durationMs: null, audioKey: null, audioExpiresAt: null, endedAt: null },
      ...{ ownerNode: 'node-1', ownerBoot: 'boot-2', createdAt: NOW },
    });
    expect(JSON.stringify(row, (_, value) => (typeof value === 'bigint' ? `${value}` : value))).not.toContain('नमस्ते');
    await drain(parts);
    expect(await fixture.rows()).toMatchObject([{ state: 'completed', durationMs: 200, endedAt: NOW, audioKey: null }]);
    expect(await fixture.webhookEvents()).toEqual([]);
    await desk.close();
  });

  it.each([
    ['engine fails', null, { state: 'failed', error: 'TTS_UNAVAILABLE' }, 0n],
    ['server stops', new TandemError('SHUTTING_DOWN', 'bye'), { state: 'failed', error: 'SHUTTING_DOWN' }, 0n],
    ['client disconnects', new Error('gone'), { state: 'abandoned', error: null }, COST],
    ['client’s key is revoked', new TandemError('UNAUTHORIZED', 'ended'), { state: 'abandoned', error: null }, COST],
  ] as const)('contains outcome and charge when its %s, and webhooks receive failures only', async (...row) => {
    const [, reason, ending, owed] = row;
    await fixture.subscribe();
    const left = new AbortController();
    const { desk } = fixture.deskOf(reason === null ? breakingOff : endless);
    const { streamId, parts } = await desk.speak(fixture.request, left.signal);
    await parts.next();
    if (reason !== null) left.abort(reason);
    await expect(parts.next()).rejects.toThrow();
    await desk.close();
    expect(await fixture.rows()).toMatchObject([{ ...ending, endedAt: NOW, audioExpiresAt: NOW }]);
    expect(await fixture.balance()).toBe(USD - owed);
    const webhookEvents = await fixture.webhookEvents();
    if (ending.state === 'abandoned') expect(webhookEvents).toEqual([]);
    else {
      const data = { id: streamId, voice_id: 'voice-hi', error: ending.error };
      expect(webhookEvents).toEqual([{ event: 'tts.failed', timestamp: NOW.toISOString(), data }]);
      expect(fixture.deliverer.enqueued).toHaveLength(1);
    }
    expect(await fixture.tempFiles()).toEqual([]);
  });
});

describe('synthesis audio for webhooks', () => {
  it('becomes a playable file, with a URL in the event', async () => {
    await fixture.subscribe();
    const { desk } = fixture.deskOf(twoParts);
    const { streamId, parts } = await desk.speak(fixture.request, listening());
    await drain(parts);
    const key = `speech/${fixture.request.workspaceId}/${streamId}.wav`;
    expect(await fixture.webhookEvents()).toEqual([
      {
        event: 'tts.completed',
        timestamp: NOW.toISOString(),
        data: {
          ...{ id: streamId, text: 'नमस्ते 😀.', voice_id: 'voice-hi', duration: 0.2 },
          audio_url: `https://voice.test/${key}?until=${IN_A_DAY.toISOString()}`,
        },
      },
    ]);
    expect(fixture.deliverer.enqueued).toHaveLength(1);
    expect(await fixture.rows()).toMatchObject([{ audioKey: key, audioExpiresAt: IN_A_DAY }]);
    const { samples, ...format } = parseWav(await objectAt(key));
    expect(format).toMatchObject({ channels: 1, sampleRateHz: 24_000 });
    expect(Buffer.from(samples[0]!.buffer).toString()).toBe('one!two!');
    expect(await fixture.tempFiles()).toEqual([]);
    await desk.close();
  });

  it.each([
    ['MP3', 'mp3'],
    ['OGG_OPUS', 'ogg'],
  ] as const)('keeps its encoding as %s', async (encoding, extension) => {
    await fixture.subscribe();
    const { desk } = fixture.deskOf(twoParts);
    const format = { encoding, sampleRateHz: 24_000 };
    const { streamId, parts } = await desk.speak({ ...fixture.request, format }, listening());
    await drain(parts);
    const key = `speech/${fixture.request.workspaceId}/${streamId}.${extension}`;
    expect((await objectAt(key)).toString()).toBe('one!two!');
    await desk.close();
  });

  it('may be missing: clients still receive it and the event contains no URL', async () => {
    await fixture.subscribe();
    for (const options of [
      { tempDir: '/nowhere' },
      { objects: { putFile: () => Promise.reject(new Error('the disk is full')) } },
    ]) {
      const { desk, logger } = fixture.deskOf(twoParts, options);
      const { parts } = await desk.speak(fixture.request, listening());
      expect(await drain(parts)).toEqual(['one!', 'two!']);
      expect(logger.messages('warn')).toEqual(['synthesised audio could not be stored']);
      await desk.close();
    }
    const data = { audio_url: null, duration: 0.2 };
    expect(await fixture.webhookEvents()).toMatchObject([{ event: 'tts.completed', data }, { data }]);
    expect(await fixture.tempFiles()).toEqual([]);
  });

  it('comes in a payload below 20 kB, with a truncated text', async () => {
    await fixture.subscribe();
    const { desk } = fixture.deskOf(twoParts);
    const { parts } = await desk.speak({ ...fixture.request, text: '\u{1F600}'.repeat(5000) }, listening());
    await drain(parts);
    await desk.close();
    const [event] = await fixture.webhookEvents();
    expect(Buffer.byteLength(JSON.stringify(event))).toBeLessThan(20_000);
    expect(event).toMatchObject({ data: { truncated: true, audio_url: expect.stringMatching(/^https:/) } });
  });
});

describe('synthesis with failing storage', () => {
  it('fails free of charge and without an event when the charge cannot be stored', async () => {
    await fixture.subscribe();
    let faults = 1;
    const sql = sqlWithFaults(fixture.database.sql, async (run) => {
      if (faults > 0) {
        faults -= 1;
        throw new Error('connection lost');
      }
      return await run();
    });
    const { desk } = fixture.deskOf(twoParts, { sql });
    await expect(desk.speak(fixture.request, listening())).rejects.toThrow('connection lost');
    await desk.close();
    expect(await fixture.balance()).toBe(USD);
    expect(await fixture.rows()).toEqual([]);
    expect(await fixture.webhookEvents()).toEqual([]);
  });

  it('fails with a refund and an event when the response to the charge is lost', async () => {
    await fixture.subscribe();
    let faults = 1;
    const sql = sqlWithFaults(fixture.database.sql, async (run) => {
      const result = await run();
      if (faults === 0) return result;
      faults -= 1;
      throw new Error('connection lost');
    });
    const { desk } = fixture.deskOf(twoParts, { sql });
    await expect(desk.speak(fixture.request, listening())).rejects.toThrow('connection lost');
    await desk.close();
    expect(await fixture.balance()).toBe(USD);
    expect(await fixture.rows()).toMatchObject([{ state: 'failed' }]);
    expect(await fixture.webhookEvents()).toMatchObject([{ event: 'tts.failed' }]);
  });

  it.each(['before', 'after'])(
    'retries storing the end, and sends one event, when storage fails %s the end is stored',
    async (when) => {
      await fixture.subscribe();
      let faults = 0;
      let failures = 0;
      let successes = 0;
      const sql = sqlWithFaults(fixture.database.sql, async (run) => {
        if (failures === faults) return await run().finally(() => (successes += 1));
        failures += 1;
        if (when === 'after') await run();
        throw new Error('connection lost');
      });
      const { desk, clock, logger } = fixture.deskOf(
        async function* () {
          yield part('one!');
          faults = 2;
        },
        { sql },
      );
      const { parts } = await desk.speak(fixture.request, listening());
      const draining = drain(parts);
      await eventually(() => {
        clock.advance(100);
        // The charge, and the third attempt.
        expect({ failures, successes }).toEqual({ failures: 2, successes: 2 });
      });
      await draining;
      await desk.close();
      expect(logger.messages('warn')).toEqual(Array(2).fill('synthesis result could not be stored'));
      expect(await fixture.rows()).toMatchObject([{ state: 'completed' }]);
      expect(await fixture.webhookEvents()).toHaveLength(1);
      expect(await fixture.balance()).toBe(USD - COST);
    },
  );

  it('does not block its client: the refund happens at the next start', async () => {
    await fixture.subscribe();
    let isLost = false;
    const sql = sqlWithFaults(fixture.database.sql, async (run) => {
      if (isLost) throw new Error('connection lost');
      return await run();
    });
    const failed = Promise.withResolvers<void>();
    const { desk, logger, clock } = fixture.deskOf(
      async function* () {
        yield part('one!');
        isLost = true;
        failed.resolve();
        throw new SynthesizerError('crashed', 'died');
      },
      { sql, boot: 'boot-1' },
    );
    const { streamId, parts } = await desk.speak(fixture.request, listening());
    const draining = drain(parts);
    draining.catch(() => undefined);
    await failed.promise;
    const closing = desk.close();
    await eventually(() => expect(clock.waiting()).toContain(4_000));
    clock.advance(4_000);
    await expect(draining).rejects.toThrow('The charge will be refunded');
    clock.advance(1_000);
    await closing;
    expect(logger.lines).toContainEqual({
      level: 'error',
      fields: { streamIds: [streamId] },
      message: 'how texts ended is not stored: the next start refunds what was not delivered',
    });
    expect(await fixture.balance()).toBe(USD - COST);
    expect(await nextStart()).toBe(1);
    expect(await fixture.balance()).toBe(USD);
  });

  it('retries until everything is stored when all connections break', async () => {
    await fixture.subscribe();
    const killer = connect({ url: fixture.database.url, max: 1 });
    const cut = () => killer`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid()`;
    const outcomes: string[] = [];
    for (const isFailing of [true, false]) {
      const { desk, clock } = fixture.deskOf(async function* () {
        yield part('one!');
        await cut();
        if (isFailing) throw new SynthesizerError('crashed', 'died');
      });
      const { parts } = await desk.speak(fixture.request, listening());
      const draining = drain(parts).then(
        () => outcomes.push('all'),
        () => outcomes.push('failed'),
      );
      await eventually(async () => {
        clock.advance(1_000);
        const rows = await fixture.rows();
        expect(rows.length).toBeGreaterThan(0);
        expect(rows.every(({ state }) => state !== 'speaking')).toBe(true);
      });
      clock.advance(10_000);
      await draining;
      await desk.close();
    }
    await killer.end();
    expect(outcomes).toEqual(['failed', 'all']);
    expect((await fixture.webhookEvents()).map(({ event }) => event).sort()).toEqual(['tts.completed', 'tts.failed']);
    expect(await fixture.balance()).toBe(USD - COST);
  });
});

describe('next start after an interrupted synthesis', () => {
  it('refunds requests of an earlier run of this node, with one event', async () => {
    await fixture.subscribe();
    const { streamId } = await startedBy({ boot: 'boot-1' });
    expect(await fixture.balance()).toBe(USD - COST);
    expect(await nextStart()).toBe(1);
    expect(await nextStart()).toBe(0);
    expect(await fixture.balance()).toBe(USD);
    expect(await fixture.rows()).toMatchObject([
      { state: 'failed', error: 'INTERRUPTED', audioExpiresAt: later(1000) },
    ]);
    const data = { id: streamId, voice_id: 'voice-hi', error: 'INTERRUPTED' };
    expect(await fixture.webhookEvents()).toEqual([
      { event: 'tts.failed', timestamp: later(1000).toISOString(), data },
    ]);
    expect(fixture.deliverer.enqueued).toHaveLength(1);
  });

  it('refunds the characters that the client did not receive', async () => {
    const { desk, clock } = fixture.deskOf(
      async function* (signal) {
        // The text has nine characters: a word of six, a space and two more.
        yield { ...part('one!'), words: [{ word: 'नमस्ते', startMs: 0, endMs: 100 }] };
        yield part('two!', 2);
        yield part('three!', 3);
        await aborted(signal);
      },
      { boot: 'boot-1' },
    );
    const { parts } = await desk.speak(fixture.request, listening());
    await parts.next();
    await parts.next();
    expect(clock.waiting()).toContain(1_000);
    clock.advance(1_000);
    await eventually(async () => expect(await fixture.rows()).toMatchObject([{ deliveredCharacters: 7 }]));
    expect(await nextStart()).toBe(1);
    expect(await fixture.balance()).toBe(USD - 7n * (COST / 9n));
    expect(await nextStart()).toBe(0);
    expect(await fixture.balance()).toBe(USD - 7n * (COST / 9n));
  });

  it('refunds nothing of a delivered text', async () => {
    const { streamId } = await startedBy({ boot: 'boot-1' });
    await fixture.database.sql`update tts_streams set delivered_characters = characters where id = ${streamId}`;
    expect(await nextStart()).toBe(1);
    expect(await fixture.balance()).toBe(USD - COST);
    expect(await fixture.rows()).toMatchObject([{ state: 'failed', error: 'INTERRUPTED' }]);
  });

  it('ignores requests of this run and of other nodes, and finished ones', async () => {
    await startedBy({ boot: 'boot-2' });
    await startedBy({ node: 'node-2', boot: 'boot-1' });
    const { desk } = fixture.deskOf(twoParts, { boot: 'boot-1' });
    await drain((await desk.speak(fixture.request, listening())).parts);
    expect(await nextStart()).toBe(0);
    expect(await fixture.balance()).toBe(USD - 3n * COST);
  });

  it('refunds once for simultaneous starts', async () => {
    await fixture.subscribe();
    for (let text = 0; text < 5; text += 1) await startedBy({ boot: 'boot-1' });
    await Promise.all([nextStart(), nextStart(), nextStart()]);
    expect(await fixture.balance()).toBe(USD);
    expect(await fixture.webhookEvents()).toHaveLength(5);
  });

  it('continues with the other requests when a refund fails', async () => {
    const { streamId } = await startedBy({ boot: 'boot-1' });
    await startedBy({ boot: 'boot-1' });
    // Makes the charge impossible to find.
    await fixture.database.sql`update tts_streams set id = 'tts_lost' where id = ${streamId}`;
    const logger = createTestLogger();
    expect(await nextStart(logger)).toBe(1);
    expect(logger.messages('error')).toEqual(['synthesis request of a lost process could not be settled']);
    expect(await fixture.balance()).toBe(USD - COST);
    await fixture.database.sql`delete from tts_streams where id = 'tts_lost'`;
  });
});

/** Starts a synthesis request of a run that then dies. */
async function startedBy(owner: { node?: string; boot: string }) {
  const { desk } = fixture.deskOf(endless, owner);
  const spoken = await desk.speak(fixture.request, listening());
  await spoken.parts.next();
  return spoken;
}

async function nextStart(logger = createTestLogger()): Promise<number> {
  const { database, node, boot, deliverer } = fixture;
  const lost = { node, exceptBoot: boot };
  return await failLostStreams({ sql: database.sql, lost, deliverer, now: later(1000), logger });
}

async function objectAt(key: string): Promise<Buffer> {
  return await buffer(await fixture.objects.read({ key }));
}
