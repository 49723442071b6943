import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { TandemError } from '../../machines/errors.ts';
import { SynthesizerError } from '../../speech/synthesizer.ts';
import { eventually } from '../eventually.ts';
import { USD } from '../storage/seed.ts';
import { aborted, createTtsDeskFixture, HINDI, heard, part, type TtsDeskFixture } from './tts-desk-fixture.ts';

let fixture: TtsDeskFixture;

beforeAll(async () => {
  fixture = await createTtsDeskFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());
beforeEach(() => fixture.fund(USD));

const listening = () => new AbortController().signal;
/** Nine characters at 15 USD a million. */
const COST = 135_000n;

describe('a text', () => {
  it('is charged by the character before it is spoken, in the usage log too', async () => {
    const { desk } = fixture.deskOf(async function* () {
      expect(await fixture.balance()).toBe(USD - COST);
      yield part('one', 1);
      yield part('two', 2);
    });
    const spoken = await desk.speak(fixture.request, listening());
    expect(spoken).toMatchObject({
      voiceId: 'voice-hi',
      characters: 9,
      charge: { chargedNano: COST, balanceAfterNano: USD - COST },
    });
    expect(await heard(spoken.parts)).toEqual(['one', 'two']);
    const usage = await fixture.database.sql`select service, operation, resource_id, unit from usage_logs
      where workspace_id = ${fixture.request.workspaceId}`;
    expect(usage).toMatchObject([
      { service: 'tts', operation: 'synthesize', resourceId: spoken.streamId, unit: 'character' },
    ]);
    await desk.close();
    expect(await fixture.balance()).toBe(USD - COST);
  });

  it('is spoken as it was read, with the recipe of its voice, as it was asked for', async () => {
    const speak = vi.fn(async function* () {
      yield part('one');
    });
    const { desk } = fixture.deskOf((signal, request) => speak.call(null, ...([request, signal] as unknown as [])));
    const style = { wordsPerMinute: 90, speed: 2, stability: 1, similarity: 2, enhance: false };
    await heard((await desk.speak({ ...fixture.request, style }, listening())).parts);
    const [[asked]] = speak.mock.calls as unknown as [[object]];
    expect(asked).toMatchObject({ recipe: HINDI, style, format: fixture.request.format });
    expect(asked).toMatchObject({ script: { characters: 9, clauses: [{ words: [{ written: 'नमस्ते' }, {}] }] } });
  });

  it.each([
    [{ voiceId: 'nobody' }, 'VOICE_NOT_FOUND', /no such voice/],
    [{ text: '<voice>a' }, 'INVALID_SSML', /^<voice> in line 1 is none/],
    [{ text: '- -' }, 'VALIDATION_FAILED', /^Nothing of the text can be said/],
  ])('with %j is refused with %s, and nothing is charged', async (wrong, code, message) => {
    const { desk } = fixture.deskOf(async function* () {
      yield part('never');
    });
    const asking = desk.speak({ ...fixture.request, ...wrong }, listening());
    await expect(asking).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
    expect(await fixture.balance()).toBe(USD);
    expect(await fixture.rows()).toEqual([]);
  });

  it('is refused when the wallet does not cover it, and nothing is said', async () => {
    const said = vi.fn();
    const { desk } = fixture.deskOf(async function* () {
      said();
      yield part('one');
    });
    await fixture.fund(100n);
    await expect(desk.speak(fixture.request, listening())).rejects.toMatchObject({ code: 'INSUFFICIENT_CREDITS' });
    expect(said).not.toHaveBeenCalled();
    expect(await fixture.rows()).toEqual([]);
  });

  it.each([
    ['crashed', 'TTS_UNAVAILABLE', 503],
    ['too_long', 'VALIDATION_FAILED', 400],
  ] as const)(
    'that cannot be begun (%s) is a refusal, and the charge is given back first',
    async (why, code, status) => {
      const { desk } = fixture.deskOf(async function* () {
        // The header of a file is no speech yet.
        yield { audio: Buffer.from('OggS'), durationMs: 0, words: [] };
        throw new SynthesizerError(why, 'died');
      });
      const asking = desk.speak(fixture.request, listening());
      await expect(asking).rejects.toMatchObject({
        code,
        status,
        message: expect.stringContaining('You were not charged'),
      });
      expect(await fixture.balance()).toBe(USD);
    },
  );

  it('that breaks off half-way tells so after what was said, and the charge is given back first', async () => {
    const { desk } = fixture.deskOf(async function* () {
      yield part('one');
      throw new SynthesizerError('crashed', 'died');
    });
    const { parts } = await desk.speak(fixture.request, listening());
    expect((await parts.next()).value).toMatchObject({ audio: Buffer.from('one') });
    await expect(parts.next()).rejects.toMatchObject({ code: 'TTS_UNAVAILABLE' });
    expect(await fixture.balance()).toBe(USD);
    const kinds = await fixture.database.sql<{ kind: string }[]>`select kind from entries
      where workspace_id = ${fixture.request.workspaceId} order by position`;
    expect(kinds.map(({ kind }) => kind)).toEqual(['top_up', 'charge', 'refund']);
  });

  it.each([[[]], [[{ audio: Buffer.from('OggS'), durationMs: 0, words: [] }]]])(
    'of which the engine says nothing (%j) is refused, and the charge is given back first',
    async (parts) => {
      const { desk } = fixture.deskOf(async function* () {
        yield* parts;
      });
      await expect(desk.speak(fixture.request, listening())).rejects.toMatchObject({ code: 'TTS_UNAVAILABLE' });
      expect(await fixture.balance()).toBe(USD);
    },
  );

  it('is spoken no faster than it is listened to', async () => {
    let made = 0;
    const { desk } = fixture.deskOf(async function* () {
      for (made = 1; made <= 100; made += 1) yield part(`${made}`, made);
    });
    const { parts } = await desk.speak(fixture.request, listening());
    await parts.next();
    await new Promise((resolve) => setImmediate(resolve));
    expect(made).toBeLessThanOrEqual(3);
    for await (const _ of parts);
    await desk.close();
    expect(made).toBe(101);
  });

  it('stops when its listener leaves, and stays charged', async () => {
    const left = new AbortController();
    const stopped = Promise.withResolvers<void>();
    const { desk } = fixture.deskOf(async function* (signal) {
      signal.addEventListener('abort', () => stopped.resolve(), { once: true });
      for (;;) yield part('again');
    });
    const { parts } = await desk.speak(fixture.request, left.signal);
    await parts.next();
    left.abort(new Error('gone'));
    await stopped.promise;
    await desk.close();
    await expect(heard(parts)).rejects.toThrow('gone');
    expect(await fixture.balance()).toBe(USD - COST);
  });

  it('that is cut off by us is paid back before that is told', async () => {
    const left = new AbortController();
    const asked = Promise.withResolvers<void>();
    const { desk } = fixture.deskOf(async function* (signal) {
      yield part('one');
      asked.resolve();
      await aborted(signal);
    });
    const { parts } = await desk.speak(fixture.request, left.signal);
    const hearing = heard(parts);
    hearing.catch(() => undefined);
    await asked.promise;
    const reason = new TandemError('SHUTTING_DOWN', 'The server is shutting down.');
    left.abort(reason);
    await expect(hearing).rejects.toBe(reason);
    expect(await fixture.balance()).toBe(USD);
  });

  it('that is left before a word of it was heard is paid back', async () => {
    const left = new AbortController();
    const asked = Promise.withResolvers<void>();
    const { desk, logger } = fixture.deskOf(async function* (signal) {
      asked.resolve();
      await aborted(signal);
      yield part('never');
    });
    const asking = desk.speak(fixture.request, left.signal);
    asking.catch(() => undefined);
    await asked.promise;
    const reason = new Error('gone');
    left.abort(reason);
    await expect(asking).rejects.toBe(reason);
    await desk.close();
    expect(await fixture.balance()).toBe(USD);
    expect(logger.lines).toEqual([]);
  });

  it('whose listener left before it began is not charged', async () => {
    const { desk } = fixture.deskOf(async function* () {
      yield part('one');
    });
    await expect(desk.speak(fixture.request, AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone');
    expect(await fixture.rows()).toEqual([]);
  });
});

it('takes no text any more once it closes', async () => {
  const { desk } = fixture.deskOf(async function* () {
    yield part('one');
  });
  await desk.close();
  await expect(desk.speak(fixture.request, listening())).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
});

it('has the languages of the catalogue', () => {
  const { desk } = fixture.deskOf(async function* () {});
  expect(desk.languages()).toEqual([{ language: 'hi', name: 'Hindi' }]);
});

it('forgets two hundred listeners who leave at every stage, and owes no more than what was heard', async () => {
  const { desk, logger } = fixture.deskOf(async function* (signal) {
    for (;;) {
      signal.throwIfAborted();
      yield part('again');
    }
  });
  await fixture.subscribe();
  let owed = 0n;
  await Promise.all(
    Array.from({ length: 200 }, async (_, index) => {
      const left = new AbortController();
      const speaking = desk.speak(fixture.request, left.signal);
      if (index % 3 === 0) {
        speaking.catch(() => undefined);
        await new Promise((resolve) => setImmediate(resolve));
        left.abort();
        const spoken = await speaking.catch(() => null);
        await spoken?.parts.return();
      } else {
        const { parts } = await speaking;
        for (let taken = 0; taken < index % 3; taken += 1) await parts.next();
        owed += COST;
        left.abort();
      }
    }),
  );
  await desk.close();
  expect(await fixture.balance()).toBe(USD - owed);
  expect(new Set((await fixture.rows()).map(({ state }) => state))).toEqual(new Set(['abandoned']));
  await eventually(async () => expect(await fixture.tempFiles()).toEqual([]));
  expect(logger.lines).toEqual([]);
});
