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
import { aborted, createTtsDeskFixture, heard, part, type TtsDeskFixture } from './tts-desk-fixture.ts';

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
/** Nine characters at 15 USD a million. */
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

describe('what is stored of a text', () => {
  it('is whose it is, what it cost and who speaks it, while it is spoken, and not what it says', async () => {
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
    await heard(parts);
    expect(await fixture.rows()).toMatchObject([{ state: 'completed', durationMs: 200, endedAt: NOW, audioKey: null }]);
    expect(await fixture.told()).toEqual([]);
    await desk.close();
  });

  it.each([
    ['engine fails', null, { state: 'failed', error: 'TTS_UNAVAILABLE' }, 0n],
    ['server ends', new TandemError('SHUTTING_DOWN', 'bye'), { state: 'failed', error: 'SHUTTING_DOWN' }, 0n],
    ['listener leaves', new Error('gone'), { state: 'abandoned', error: null }, COST],
    ['listener’s key is revoked', new TandemError('UNAUTHORIZED', 'ended'), { state: 'abandoned', error: null }, COST],
  ] as const)('when its %s, is how it ended, with the money, and webhooks hear of failures only', async (...row) => {
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
    const told = await fixture.told();
    if (ending.state === 'abandoned') expect(told).toEqual([]);
    else {
      const data = { id: streamId, voice_id: 'voice-hi', error: ending.error };
      expect(told).toEqual([{ event: 'tts.failed', timestamp: NOW.toISOString(), data }]);
      expect(fixture.deliverer.enqueued).toHaveLength(1);
    }
    expect(await fixture.tempFiles()).toEqual([]);
  });
});

describe('audio for webhooks', () => {
  it('is stored as a file that plays, and its address told with the text', async () => {
    await fixture.subscribe();
    const { desk } = fixture.deskOf(twoParts);
    const { streamId, parts } = await desk.speak(fixture.request, listening());
    await heard(parts);
    const key = `speech/${fixture.request.workspaceId}/${streamId}.wav`;
    expect(await fixture.told()).toEqual([
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
  ] as const)('is stored as it is when it is %s', async (encoding, extension) => {
    await fixture.subscribe();
    const { desk } = fixture.deskOf(twoParts);
    const format = { encoding, sampleRateHz: 24_000 };
    const { streamId, parts } = await desk.speak({ ...fixture.request, format }, listening());
    await heard(parts);
    const key = `speech/${fixture.request.workspaceId}/${streamId}.${extension}`;
    expect((await objectAt(key)).toString()).toBe('one!two!');
    await desk.close();
  });

  it('that cannot be kept keeps nobody from hearing, and the event says that there is none', async () => {
    await fixture.subscribe();
    for (const options of [
      { tempDir: '/nowhere' },
      { objects: { putFile: () => Promise.reject(new Error('the disk is full')) } },
    ]) {
      const { desk, logger } = fixture.deskOf(twoParts, options);
      const { parts } = await desk.speak(fixture.request, listening());
      expect(await heard(parts)).toEqual(['one!', 'two!']);
      expect(logger.messages('warn')).toEqual(['synthesised audio could not be stored']);
      await desk.close();
    }
    const data = { audio_url: null, duration: 0.2 };
    expect(await fixture.told()).toMatchObject([{ event: 'tts.completed', data }, { data }]);
    expect(await fixture.tempFiles()).toEqual([]);
  });

  it('leaves a body under 20 kB: the text is cut', async () => {
    await fixture.subscribe();
    const { desk } = fixture.deskOf(twoParts);
    const { parts } = await desk.speak({ ...fixture.request, text: '\u{1F600}'.repeat(5000) }, listening());
    await heard(parts);
    await desk.close();
    const [event] = await fixture.told();
    expect(Buffer.byteLength(JSON.stringify(event))).toBeLessThan(20_000);
    expect(event).toMatchObject({ data: { truncated: true, audio_url: expect.stringMatching(/^https:/) } });
  });
});

describe('storage that fails', () => {
  it('before the charge is stored refuses the text, which is not charged nor ever told of', async () => {
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
    expect(await fixture.told()).toEqual([]);
  });

  it('as it answers that the charge is stored refuses the text, pays back and tells', async () => {
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
    expect(await fixture.told()).toMatchObject([{ event: 'tts.failed' }]);
  });

  it.each(['before', 'after'])('%s the end is stored is asked again, and webhooks are told once', async (when) => {
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
    const hearing = heard(parts);
    await eventually(() => {
      clock.advance(100);
      // The charge, and the third attempt.
      expect({ failures, successes }).toEqual({ failures: 2, successes: 2 });
    });
    await hearing;
    await desk.close();
    expect(logger.messages('warn')).toEqual(Array(2).fill('synthesis result could not be stored'));
    expect(await fixture.rows()).toMatchObject([{ state: 'completed' }]);
    expect(await fixture.told()).toHaveLength(1);
    expect(await fixture.balance()).toBe(USD - COST);
  });

  it('for long does not keep whoever waits: they hear that they are paid back, and the next start does it', async () => {
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
    const hearing = heard(parts);
    hearing.catch(() => undefined);
    await failed.promise;
    const closing = desk.close();
    await eventually(() => expect(clock.waiting()).toContain(4_000));
    clock.advance(4_000);
    await expect(hearing).rejects.toThrow('The charge will be refunded');
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

  it('because all its connections were cut is asked again until it has stored everything', async () => {
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
      const hearing = heard(parts).then(
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
      await hearing;
      await desk.close();
    }
    await killer.end();
    expect(outcomes).toEqual(['failed', 'all']);
    expect((await fixture.told()).map(({ event }) => event).sort()).toEqual(['tts.completed', 'tts.failed']);
    expect(await fixture.balance()).toBe(USD - COST);
  });
});

describe('the next start', () => {
  it('pays back what an earlier run of this node was speaking, and tells it once', async () => {
    await fixture.subscribe();
    const { streamId } = await spokenBy({ boot: 'boot-1' });
    expect(await fixture.balance()).toBe(USD - COST);
    expect(await nextStart()).toBe(1);
    expect(await nextStart()).toBe(0);
    expect(await fixture.balance()).toBe(USD);
    expect(await fixture.rows()).toMatchObject([
      { state: 'failed', error: 'INTERRUPTED', audioExpiresAt: later(1000) },
    ]);
    const data = { id: streamId, voice_id: 'voice-hi', error: 'INTERRUPTED' };
    expect(await fixture.told()).toEqual([{ event: 'tts.failed', timestamp: later(1000).toISOString(), data }]);
    expect(fixture.deliverer.enqueued).toHaveLength(1);
  });

  it('refunds of a text the characters that its listener had not received', async () => {
    const { desk, clock } = fixture.deskOf(
      async function* (signal) {
        // The text has nine characters: six of a word, a space, and two.
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

  it('refunds nothing of a text that was delivered whole', async () => {
    const { streamId } = await spokenBy({ boot: 'boot-1' });
    await fixture.database.sql`update tts_streams set delivered_characters = characters where id = ${streamId}`;
    expect(await nextStart()).toBe(1);
    expect(await fixture.balance()).toBe(USD - COST);
    expect(await fixture.rows()).toMatchObject([{ state: 'failed', error: 'INTERRUPTED' }]);
  });

  it('leaves alone what this run and other nodes are speaking, and what ended', async () => {
    await spokenBy({ boot: 'boot-2' });
    await spokenBy({ node: 'node-2', boot: 'boot-1' });
    const { desk } = fixture.deskOf(twoParts, { boot: 'boot-1' });
    await heard((await desk.speak(fixture.request, listening())).parts);
    expect(await nextStart()).toBe(0);
    expect(await fixture.balance()).toBe(USD - 3n * COST);
  });

  it('pays back once although two look at the same time', async () => {
    await fixture.subscribe();
    for (let text = 0; text < 5; text += 1) await spokenBy({ boot: 'boot-1' });
    await Promise.all([nextStart(), nextStart(), nextStart()]);
    expect(await fixture.balance()).toBe(USD);
    expect(await fixture.told()).toHaveLength(5);
  });

  it('goes on with the others when one cannot be paid back', async () => {
    const { streamId } = await spokenBy({ boot: 'boot-1' });
    await spokenBy({ boot: 'boot-1' });
    // As if its charge had never been.
    await fixture.database.sql`update tts_streams set id = 'tts_lost' where id = ${streamId}`;
    const logger = createTestLogger();
    expect(await nextStart(logger)).toBe(1);
    expect(logger.messages('error')).toEqual(['synthesis request of a lost process could not be settled']);
    expect(await fixture.balance()).toBe(USD - COST);
    await fixture.database.sql`delete from tts_streams where id = 'tts_lost'`;
  });
});

/** The start of a text by a run that dies then. */
async function spokenBy(owner: { node?: string; boot: string }) {
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
