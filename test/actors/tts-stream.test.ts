import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import type { SpeakTextRequest } from '../../actors/tts/tts-desk.ts';
import { createTtsDesk } from '../../actors/tts/tts-stream.actor.ts';
import { TandemError } from '../../machines/errors.ts';
import type { SpeechSynthesis } from '../../speech/synthesis/speech-synthesis.ts';
import { type SpokenClause, SynthesizerError } from '../../speech/synthesizer.ts';
import type { Sql } from '../../storage/database.ts';
import { walletOf } from '../../storage/ledger.ts';
import { seedWorkspace, USD } from '../storage/seed.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import { createTestClock, createTestLogger, type TestClock } from './fakes.ts';

let database: TestDatabase;
let request: SpeakTextRequest;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(async () => {
  await database.drop();
});

beforeEach(async () => {
  const { workspace, user } = await seedWorkspace(database.sql, { balanceNano: USD });
  request = {
    workspaceId: workspace.id,
    userId: user.id,
    apiKeyId: null,
    text: 'नमस्ते 😀.',
    voice: 'hi',
    wordsPerMinute: 137,
    format: { encoding: 'LINEAR16', sampleRateHz: 24_000 },
  };
});

const listening = () => new AbortController().signal;
const balance = async () => (await walletOf(database.sql, request.workspaceId)).balanceNano;

describe('a text', () => {
  it('is charged by the character before it is spoken, in the usage log too', async () => {
    const { desk } = deskOf(async function* () {
      // Nine characters at 15 USD a million.
      expect(await balance()).toBe(USD - 9n * 15_000n);
      yield clause('one');
      yield clause('two');
    });
    const spoken = await desk.speak(request, listening());
    expect(spoken.charge).toMatchObject({ chargedNano: 135_000n, balanceAfterNano: USD - 135_000n });
    expect(await texts(spoken.clauses)).toEqual(['one', 'two']);
    const usage = await database.sql`select service, operation, resource_id, unit from usage_logs
      where workspace_id = ${request.workspaceId}`;
    expect(usage).toMatchObject([
      { service: 'tts', operation: 'synthesize', resourceId: spoken.streamId, unit: 'character' },
    ]);
    await desk.close();
    expect(await balance()).toBe(USD - 135_000n);
  });

  it('is refused when the wallet does not cover it, and nothing is said', async () => {
    const said = vi.fn();
    const { desk } = deskOf(async function* () {
      said();
      yield clause('one');
    });
    const { workspace } = await seedWorkspace(database.sql, { balanceNano: 100n });
    const poor = { ...request, workspaceId: workspace.id };
    await expect(desk.speak(poor, listening())).rejects.toMatchObject({ code: 'INSUFFICIENT_CREDITS' });
    expect(said).not.toHaveBeenCalled();
  });

  it('that cannot be begun is a refusal, and the charge is given back first', async () => {
    const { desk } = deskOf(async function* () {
      throw new SynthesizerError('crashed', 'died');
      // biome-ignore lint/correctness/noUnreachable: makes it a generator of clauses
      yield clause('never');
    });
    await expect(desk.speak(request, listening())).rejects.toMatchObject({ code: 'TTS_UNAVAILABLE', status: 503 });
    expect(await balance()).toBe(USD);
  });

  it('that breaks off half-way tells so after what was said, and the charge is given back first', async () => {
    const { desk } = deskOf(async function* () {
      yield clause('one');
      throw new SynthesizerError('crashed', 'died');
    });
    const { clauses } = await desk.speak(request, listening());
    expect((await clauses.next()).value?.audio.toString()).toBe('one');
    await expect(clauses.next()).rejects.toMatchObject({ code: 'TTS_UNAVAILABLE' });
    expect(await balance()).toBe(USD);
    const kinds = await database.sql<{ kind: string }[]>`select kind from entries
      where workspace_id = ${request.workspaceId} order by position`;
    expect(kinds.map(({ kind }) => kind)).toEqual(['top_up', 'charge', 'refund']);
  });

  it('is spoken no faster than it is listened to', async () => {
    let made = 0;
    const { desk } = deskOf(async function* () {
      for (made = 1; made <= 100; made += 1) yield clause(`${made}`);
    });
    const { clauses } = await desk.speak(request, listening());
    await clauses.next();
    await new Promise((resolve) => setImmediate(resolve));
    expect(made).toBeLessThanOrEqual(3);
    for await (const _ of clauses);
    await desk.close();
    expect(made).toBe(101);
  });

  it('stops when its listener leaves, and stays charged', async () => {
    const left = new AbortController();
    const stopped = Promise.withResolvers<void>();
    const { desk } = deskOf(async function* (signal) {
      signal.addEventListener('abort', () => stopped.resolve(), { once: true });
      for (;;) yield clause('again');
    });
    const { clauses } = await desk.speak(request, left.signal);
    await clauses.next();
    left.abort(new Error('gone'));
    await stopped.promise;
    await desk.close();
    await expect(texts(clauses)).rejects.toThrow('gone');
    expect(await balance()).toBe(USD - 135_000n);
  });

  it.each([
    ['is cut off by us', new TandemError('SHUTTING_DOWN', 'The server is shutting down.'), 'one'],
    ['is left before a word of it was heard', new Error('gone'), null],
  ])('that %s is paid back before that is told', async (_, reason, heard) => {
    const left = new AbortController();
    const asked = Promise.withResolvers<void>();
    const { desk, logger } = deskOf(async function* (signal) {
      if (heard !== null) yield clause(heard);
      asked.resolve();
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }));
    });
    const speaking = (async () => await texts((await desk.speak(request, left.signal)).clauses))();
    speaking.catch(() => undefined);
    await asked.promise;
    left.abort(reason);
    await expect(speaking).rejects.toBe(reason);
    expect(await balance()).toBe(USD);
    expect(logger.lines.filter(({ level }) => level !== 'info')).toEqual([]);
  });

  it('whose listener left before the first word is paid back, and leaves nothing behind', async () => {
    const { desk } = deskOf(async function* () {
      yield clause('one');
    });
    await expect(desk.speak(request, AbortSignal.abort(new Error('gone')))).rejects.toThrow();
    await desk.close();
    expect(await balance()).toBe(USD);
  });
});

it('closes although a refund cannot be stored, and names what it owes', async () => {
  let isLost = false;
  const sql = new Proxy(database.sql, {
    get(target, name, receiver) {
      if (isLost && name === 'begin') return () => Promise.reject(new Error('connection lost'));
      return Reflect.get(target, name, receiver);
    },
  });
  const clock = createTestClock();
  const failed = Promise.withResolvers<void>();
  const { desk, logger } = deskOf(
    async function* () {
      yield clause('one');
      isLost = true;
      failed.resolve();
      throw new SynthesizerError('crashed', 'died');
    },
    { sql, clock },
  );
  const { streamId, clauses } = await desk.speak(request, listening());
  const heard = texts(clauses);
  heard.catch(() => undefined);
  await failed.promise;
  const closing = desk.close();
  clock.advance(5_000);
  await closing;
  expect(logger.lines).toContainEqual({
    level: 'error',
    fields: { streamIds: [streamId] },
    message: 'texts that failed could not be refunded',
  });
});

it('takes no text any more once it closes', async () => {
  const { desk } = deskOf(async function* () {
    yield clause('one');
  });
  await desk.close();
  await expect(desk.speak(request, listening())).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
});

function clause(text: string): SpokenClause {
  return { audio: Buffer.from(text), durationMs: 100, words: [] };
}

async function texts(clauses: AsyncIterable<SpokenClause>): Promise<string[]> {
  const heard: string[] = [];
  for await (const { audio } of clauses) heard.push(audio.toString());
  return heard;
}

function deskOf(
  speak: (signal: AbortSignal) => AsyncGenerator<SpokenClause, void>,
  { sql = database.sql, clock = createTestClock() }: { sql?: Sql; clock?: TestClock } = {},
) {
  const synthesis: SpeechSynthesis = { speak: (_, signal) => speak(signal), close: async () => {} };
  const logger = createTestLogger();
  return { desk: createTtsDesk({ sql, synthesis, clock, logger }), logger };
}
