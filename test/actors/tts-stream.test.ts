import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { TandemError } from '../../machines/errors.ts';
import type { SpeakRequest } from '../../speech/speech-synthesis.ts';
import { SynthesizerError } from '../../speech/synthesizer.ts';
import { eventually } from '../eventually.ts';
import { USD } from '../storage/seed.ts';
import { aborted, createTtsDeskFixture, drain, HINDI, part, type TtsDeskFixture } from './tts-desk-fixture.ts';

let fixture: TtsDeskFixture;

beforeAll(async () => {
  fixture = await createTtsDeskFixture();
});
afterAll(() => fixture[Symbol.asyncDispose]());
beforeEach(() => fixture.fund(USD));

const listening = () => new AbortController().signal;
/** Nine characters at 15 USD per million. */
const COST = 135_000n;

describe('synthesis request', () => {
  it('charges each character before synthesis, and appears in the usage log', async () => {
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
    expect(await drain(spoken.parts)).toEqual(['one', 'two']);
    const usage = await fixture.database.sql`select service, operation, resource_id, unit from usage_logs
      where workspace_id = ${fixture.request.workspaceId}`;
    expect(usage).toMatchObject([
      { service: 'tts', operation: 'synthesize', resourceId: spoken.streamId, unit: 'character' },
    ]);
    await desk.close();
    expect(await fixture.balance()).toBe(USD - COST);
  });

  it('passes script, voice recipe and style to the engine', async () => {
    let asked: SpeakRequest | undefined;
    const { desk } = fixture.deskOf(async function* (_, request) {
      asked = request;
      yield part('one');
    });
    const style = { wordsPerMinute: 90, speed: 2, stability: 1, similarity: 2, enhance: false };
    await drain((await desk.speak({ ...fixture.request, style }, listening())).parts);
    expect(asked).toMatchObject({ recipe: HINDI, style, format: fixture.request.format });
    expect(asked).toMatchObject({ script: { characters: 9, clauses: [{ words: [{ written: 'नमस्ते' }, {}] }] } });
  });

  it.each([
    [{ voiceId: 'nobody' }, 'VOICE_NOT_FOUND', /no such voice/],
    [{ text: '<voice>a' }, 'INVALID_SSML', /^<voice> in line 1 is none/],
    [{ text: '- -' }, 'VALIDATION_FAILED', /^Nothing of the text can be said/],
  ])('with %j fails with %s, free of charge', async (wrong, code, message) => {
    const { desk } = fixture.deskOf(async function* () {
      yield part('never');
    });
    const asking = desk.speak({ ...fixture.request, ...wrong }, listening());
    await expect(asking).rejects.toMatchObject({ code, message: expect.stringMatching(message) });
    expect(await fixture.balance()).toBe(USD);
    expect(await fixture.rows()).toEqual([]);
  });

  it('fails before synthesis when the wallet does not cover it', async () => {
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
  ] as const)('fails with a refund when synthesis cannot start (%s)', async (why, code, status) => {
    const { desk } = fixture.deskOf(async function* () {
      // A file header is not yet speech.
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
  });

  it('fails after its audio with a prior refund when synthesis breaks off', async () => {
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
    'fails with a refund when the engine returns no audio (%j)',
    async (parts) => {
      const { desk } = fixture.deskOf(async function* () {
        yield* parts;
      });
      await expect(desk.speak(fixture.request, listening())).rejects.toMatchObject({ code: 'TTS_UNAVAILABLE' });
      expect(await fixture.balance()).toBe(USD);
    },
  );

  it('stays at most three chunks ahead of its client', async () => {
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

  it('stops when its client disconnects, and stays charged', async () => {
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
    await expect(drain(parts)).rejects.toThrow('gone');
    expect(await fixture.balance()).toBe(USD - COST);
  });

  it('refunds its charge before it reports a shutdown', async () => {
    const left = new AbortController();
    const asked = Promise.withResolvers<void>();
    const { desk } = fixture.deskOf(async function* (signal) {
      yield part('one');
      asked.resolve();
      await aborted(signal);
    });
    const { parts } = await desk.speak(fixture.request, left.signal);
    const draining = drain(parts);
    draining.catch(() => undefined);
    await asked.promise;
    const reason = new TandemError('SHUTTING_DOWN', 'The server is shutting down.');
    left.abort(reason);
    await expect(draining).rejects.toBe(reason);
    expect(await fixture.balance()).toBe(USD);
  });

  it('refunds its charge when the client disconnects before the first audio', async () => {
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

  it('refunds its charge when the client disconnects although all audio is ready', async () => {
    const { desk } = fixture.deskOf(async function* () {
      yield part('all');
    });
    const client = new AbortController();
    await desk.speak(fixture.request, client.signal);
    await new Promise((resolve) => setImmediate(resolve));
    client.abort();
    await desk.close();
    expect(await fixture.balance()).toBe(USD);
    expect(await fixture.rows()).toMatchObject([{ state: 'abandoned' }]);
  });

  it('delivers no audio that it refunds when its credentials end', async () => {
    const { desk } = fixture.deskOf(async function* () {
      yield part('all');
    });
    const client = new AbortController();
    const { parts } = await desk.speak(fixture.request, client.signal);
    client.abort(new TandemError('UNAUTHORIZED', 'The credentials were revoked.'));
    await expect(parts.next()).rejects.toMatchObject({ code: 'UNAUTHORIZED' });
    await desk.close();
    expect(await fixture.balance()).toBe(USD);
  });

  it('costs nothing when the client disconnects before the start', async () => {
    const { desk } = fixture.deskOf(async function* () {
      yield part('one');
    });
    await expect(desk.speak(fixture.request, AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone');
    expect(await fixture.rows()).toEqual([]);
  });
});

it('a closed synthesis desk rejects requests', async () => {
  const { desk } = fixture.deskOf(async function* () {
    yield part('one');
  });
  await desk.close();
  await expect(desk.speak(fixture.request, listening())).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
});

it('the synthesis desk lists the languages of the catalogue', () => {
  const { desk } = fixture.deskOf(async function* () {});
  expect(desk.languages()).toEqual([{ language: 'hi', name: 'Hindi' }]);
});

it('two hundred clients that disconnect at every stage pay for at most what they received', async () => {
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
