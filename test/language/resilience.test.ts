import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { collectCompletion } from '../../language/collect-completion.ts';
import { LanguageEngineError } from '../../language/engine.ts';
import type { CompletionRequest } from '../../language/llm.ts';
import { ResilientEngine } from '../../language/resilience/resilient-engine.ts';
import { createTestClock } from '../actors/fakes.ts';
import { untilTruthy } from '../eventually.ts';
import { failureOf, ScriptedEngine } from './scripted-engine.ts';

const LONGEST_RETRY_MS = 4_000;
const START = new Date('2026-01-02T03:04:05.678Z');

let clock: ReturnType<typeof createTestClock>;
let engine: ScriptedEngine;
let resilient: ResilientEngine;
beforeEach(() => {
  // The circuit breaker has no other clock than the system's.
  vi.useFakeTimers({ toFake: ['Date'], now: START });
  clock = createTestClock(START);
  engine = new ScriptedEngine();
  resilient = new ResilientEngine(engine, { concurrency: 2, clock });
});
afterEach(() => {
  vi.useRealTimers();
});

function ask(more: Partial<CompletionRequest> & { model?: string } = {}) {
  const request = { model: 'tiny-1.0', messages: [], signal: new AbortController().signal, ...more };
  return collectCompletion(resilient.stream(request));
}

/** Waits until somebody waits for no longer than so, and lets the time pass. */
async function pass(ms: number): Promise<void> {
  await untilTruthy(() => clock.waiting().some((waitingMs) => waitingMs <= ms));
  advance(ms);
}

function advance(ms: number): void {
  clock.advance(ms);
  vi.setSystemTime(clock.now());
}

describe('what fails before its first part', () => {
  it('is tried again after a while, and answers', async () => {
    engine.turns = [failureOf('unavailable'), failureOf('unavailable')];
    const answer = ask();
    await engine.attempted(1);
    await pass(LONGEST_RETRY_MS);
    await engine.attempted(2);
    await pass(LONGEST_RETRY_MS);
    expect((await answer).text).toBe('Hello.');
    expect(engine.attempts).toHaveLength(3);
  });

  it('is tried twice more by default, and as often as is asked', async () => {
    engine.turns = [failureOf('unavailable')];
    await expect(ask({ retries: 0 })).rejects.toMatchObject({ code: 'unavailable' });
    expect(engine.attempts).toHaveLength(1);
  });

  it('is not tried sooner than the server asks for', async () => {
    engine.turns = [failureOf('rate_limited', 3)];
    const answer = ask();
    await engine.attempted(1);
    await untilTruthy(() => clock.waiting().includes(3_000));
    advance(3_000);
    expect((await answer).text).toBe('Hello.');
  });

  it('is not tried again when the server asks for longer than anybody waits', async () => {
    engine.turns = [failureOf('rate_limited', 60)];
    await expect(ask()).rejects.toMatchObject({ code: 'rate_limited', retryAfterS: 60 });
    expect(engine.attempts).toHaveLength(1);
  });

  it.each(['refused', 'context_too_long', 'model_not_found'] as const)(
    'for good (%s) is not tried again',
    async (code) => {
      engine.turns = [failureOf(code)];
      await expect(ask()).rejects.toMatchObject({ code });
      expect(engine.attempts).toHaveLength(1);
    },
  );

  it('is left alone once its asker has gone', async () => {
    engine.turns = [failureOf('unavailable')];
    const abort = new AbortController();
    const answer = ask({ signal: abort.signal });
    await untilTruthy(() => clock.waiting().some((ms) => ms <= LONGEST_RETRY_MS));
    abort.abort(new Error('gone'));
    await expect(answer).rejects.toThrow('gone');
    expect(engine.attempts).toHaveLength(1);
    expect(clock.waiting()).toEqual([]);
  });
});

describe('what fails behind its first part', () => {
  it('is not tried again', async () => {
    engine.turns = ['breaks'];
    await expect(ask()).rejects.toMatchObject({ code: 'unavailable' });
    expect(engine.attempts).toHaveLength(1);
  });
});

describe('an engine that is silent', () => {
  it.each(['silent', 'deaf'] as const)('(%s) is given up once patience is over, and told so', async (turn) => {
    engine.turns = [turn];
    const answer = ask({ patienceMs: 500 });
    await engine.attempted(1);
    await pass(500);
    await expect(answer).rejects.toMatchObject({ code: 'timeout' });
    expect(engine.attempts).toHaveLength(1);
    expect(engine.attempts[0]?.signal.aborted).toBe(true);
  });

  it('but for a word now and then is given up after an hour', async () => {
    engine.turns = ['trickles'];
    let words = 0;
    engine.onTrickle = () => {
      words += 1;
      advance(50_000);
    };
    await expect(ask()).rejects.toMatchObject({ code: 'timeout', message: expect.stringContaining('come to an end') });
    expect(words).toBe(72);
    expect((await ask()).text).toBe('Hello.');
  });

  it('(deaf) holds nobody up who has gone', async () => {
    engine.turns = ['deaf'];
    const abort = new AbortController();
    const answer = ask({ signal: abort.signal });
    await engine.attempted(1);
    abort.abort(new Error('gone'));
    await expect(answer).rejects.toThrow('gone');
  });

  it('is unavailable when it ends without an answer', async () => {
    engine.turns = ['ends'];
    await expect(ask({ retries: 0 })).rejects.toMatchObject({ code: 'unavailable' });
  });
});

describe('an engine that fails five times in a row', () => {
  beforeEach(async () => {
    engine.turns = Array.from({ length: 5 }, () => failureOf('unavailable'));
    for (let time = 0; time < 5; time++) await ask({ retries: 0 }).catch(() => {});
  });

  it('is not asked for a while, and it is said for how long', async () => {
    advance(1_500);
    const message = expect.stringMatching(/several times in a row: as scripted/);
    await expect(ask()).rejects.toMatchObject({ code: 'unavailable', retryAfterS: 4, message });
    expect(engine.attempts).toHaveLength(5);
  });

  it('with one model is asked for others all the same', async () => {
    expect((await ask({ model: 'big-2.0' })).text).toBe('Hello.');
    await expect(ask()).rejects.toMatchObject({ code: 'unavailable', retryAfterS: 5 });
  });

  it('lists its models all the same, which shows nothing of its answers', async () => {
    expect(await resilient.models(new AbortController().signal)).toHaveLength(1);
    await expect(ask()).rejects.toMatchObject({ code: 'unavailable', retryAfterS: 5 });
    expect(engine.attempts).toHaveLength(5);
  });

  it('is asked by the next one alone when whoever was to find out has left', async () => {
    advance(5_000);
    for (const number of [6, 7]) {
      const abort = new AbortController();
      engine.turns = ['silent'];
      const leaving = ask({ signal: abort.signal, retries: 0 });
      await engine.attempted(number);
      await expect(ask()).rejects.toMatchObject({ code: 'unavailable', retryAfterS: 1 });
      abort.abort(new Error('gone'));
      await expect(leaving).rejects.toThrow('gone');
    }
    engine.turns = [failureOf('unavailable')];
    await expect(ask({ retries: 0 })).rejects.toMatchObject({ message: 'as scripted' });
    await expect(ask()).rejects.toMatchObject({ retryAfterS: 5 });
    advance(5_000);
    expect((await ask()).text).toBe('Hello.');
    expect((await Promise.all([ask(), ask()])).map(({ text }) => text)).toEqual(['Hello.', 'Hello.']);
  });

  it('is asked by one alone after that, and by all once it answered', async () => {
    advance(5_000);
    const abort = new AbortController();
    engine.turns = ['silent'];
    const probe = ask({ signal: abort.signal, patienceMs: 1_000, retries: 0 });
    await engine.attempted(6);
    await expect(ask()).rejects.toMatchObject({ code: 'unavailable', retryAfterS: 1 });
    await pass(1_000);
    await expect(probe).rejects.toMatchObject({ code: 'timeout' });

    // It failed again: longer now.
    advance(9_000);
    await expect(ask()).rejects.toMatchObject({ code: 'unavailable', retryAfterS: 1 });
    advance(1_000);
    expect((await ask()).text).toBe('Hello.');
    expect((await ask()).text).toBe('Hello.');
  });
});

describe('the breaker', () => {
  it('does not count what says that the engine is there, what may be for one request alone, nor that somebody left', async () => {
    engine.turns = Array.from({ length: 8 }, () => failureOf('refused'));
    for (let time = 0; time < 8; time++) await ask().catch(() => {});
    const ofRequest = new LanguageEngineError('unavailable', 'as scripted', { ofRequest: true });
    engine.turns = Array.from({ length: 8 }, () => ofRequest);
    for (let time = 0; time < 8; time++) await ask({ retries: 0 }).catch(() => {});
    for (let time = 0; time < 8; time++) {
      const abort = new AbortController();
      engine.turns = ['silent'];
      const answer = ask({ signal: abort.signal });
      await engine.attempted(17 + time);
      abort.abort(new Error('gone'));
      await expect(answer).rejects.toThrow('gone');
    }
    expect((await ask()).text).toBe('Hello.');
  });
});

describe('a list of models that cannot be had', () => {
  it('is not asked for any more after five times, and keeps nobody from an answer', async () => {
    engine.onList = () => Promise.reject(failureOf('unavailable'));
    const { signal } = new AbortController();
    for (let time = 0; time < 7; time++) {
      await expect(resilient.models(signal)).rejects.toMatchObject({ code: 'unavailable' });
    }
    expect(engine.listings).toBe(5);
    expect((await ask()).text).toBe('Hello.');
  });
});

describe('a model that is busy', () => {
  async function occupy(count: number, model = 'tiny-1.0') {
    const abort = new AbortController();
    const before = engine.attempts.length;
    engine.turns = Array.from({ length: count }, () => 'silent' as const);
    const held = Array.from({ length: count }, () => ask({ model, signal: abort.signal }).catch(() => 'ended'));
    await engine.attempted(before + count);
    return async () => {
      abort.abort(new Error('enough'));
      await Promise.all(held);
    };
  }

  it('gives so many answers at a time, and the others in the order they were asked for', async () => {
    const release = await occupy(2);
    const order: string[] = [];
    const waiting = ['a', 'b', 'c'].map(async (name) => {
      await ask();
      order.push(name);
    });
    await Promise.resolve();
    expect(engine.attempts).toHaveLength(2);
    await release();
    await Promise.all(waiting);
    expect(order).toEqual(['a', 'b', 'c']);
  });

  it('does not keep another model from answering', async () => {
    const release = await occupy(2);
    expect((await ask({ model: 'big-2.0' })).model).toBe('big-2.0');
    await release();
  });

  it('turns away who comes when too many wait already', async () => {
    const release = await occupy(2);
    const waiting = Array.from({ length: 16 }, () => ask());
    await expect(ask()).rejects.toMatchObject({ code: 'rate_limited', retryAfterS: 2 });
    await release();
    await Promise.all(waiting);
  });

  it('answers each workspace by turns, however much one of them asks', async () => {
    const release = await occupy(2);
    const order: string[] = [];
    const waiting = ['a', 'a', 'a', 'a', 'b', 'c', 'b'].map(async (onBehalfOf, number) => {
      await ask({ onBehalfOf });
      order.push(`${onBehalfOf}${number}`);
    });
    await Promise.resolve();
    await release();
    await Promise.all(waiting);
    expect(order).toEqual(['a0', 'b4', 'c5', 'a1', 'b6', 'a2', 'a3']);
  });

  it('has room for another workspace where one takes all of it, and turns the last of that one away', async () => {
    const release = await occupy(2);
    const greedy = Array.from({ length: 16 }, () =>
      ask({ onBehalfOf: 'a' }).then(
        () => 'answered',
        ({ code }) => code,
      ),
    );
    const other = ask({ onBehalfOf: 'b' });
    await expect(ask({ onBehalfOf: 'a' })).rejects.toMatchObject({ code: 'rate_limited' });
    await release();
    expect((await other).text).toBe('Hello.');
    expect(await Promise.all(greedy)).toEqual([...Array.from({ length: 15 }, () => 'answered'), 'rate_limited']);
    expect((await ask({ onBehalfOf: 'a' })).text).toBe('Hello.');
  });

  it('shares its room among workspaces, and no further', async () => {
    const release = await occupy(2);
    const settled = (names: string[]) =>
      names.map((onBehalfOf) =>
        ask({ onBehalfOf }).then(
          () => onBehalfOf,
          () => `no ${onBehalfOf}`,
        ),
      );
    const asked = settled([...Array(16).fill('a'), ...Array(20).fill('b')]);
    await Promise.resolve();
    await release();
    const ended = await Promise.all(asked);
    const count = (name: string) => ended.filter((one) => one === name).length;
    expect([count('a'), count('b')]).toEqual([8, 8]);
    expect([count('no a'), count('no b')]).toEqual([8, 12]);
  });

  it('turns away who waits in vain', async () => {
    const release = await occupy(2);
    const late = ask({ patienceMs: 700 });
    await untilTruthy(() => clock.waiting().includes(700));
    advance(700);
    await expect(late).rejects.toMatchObject({ code: 'rate_limited' });
    await release();
  });

  it('waits longer for a turn than for an answer, if it is told to', async () => {
    const release = await occupy(2);
    const late = ask({ patienceMs: 700, turnWithinMs: 5_000 });
    await untilTruthy(() => clock.waiting().includes(5_000));
    advance(4_999);
    await release();
    expect((await late).text).toBe('Hello.');
  });

  it('forgets who left the queue: neither their place nor those behind them are lost', async () => {
    const release = await occupy(2);
    const abort = new AbortController();
    const leaving = Array.from({ length: 16 }, () => ask({ signal: abort.signal }).catch(() => 'left'));
    await untilTruthy(() => clock.waiting().length >= 16);
    abort.abort(new Error('gone'));
    expect(await Promise.all(leaving)).toEqual(Array.from({ length: 16 }, () => 'left'));
    const behind = ask();
    await release();
    expect((await behind).text).toBe('Hello.');
    expect(engine.attempts).toHaveLength(3);
  });

  it('has a place again for each answer that failed or was not read to its end', async () => {
    engine.turns = ['breaks', failureOf('refused')];
    await ask().catch(() => {});
    await ask().catch(() => {});
    for (let time = 0; time < 5; time++) {
      const request = { model: 'tiny-1.0', messages: [], signal: new AbortController().signal };
      for await (const part of resilient.stream(request)) if (part.type === 'text') break;
    }
    expect((await ask()).text).toBe('Hello.');
    expect(engine.ended).toBe(8);
  });
});
