import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { collectCompletion } from '../../language/collect-completion.ts';
import { LanguageEngineError } from '../../language/engine.ts';
import type { CompletionRequest } from '../../language/llm.ts';
import { ResilientEngine } from '../../language/resilience/resilient-engine.ts';
import { createTestClock } from '../actors/fakes.ts';
import { untilTruthy } from '../eventually.ts';
import { failureOf, ScriptedEngine } from './scripted-engine.ts';

const LONGEST_RETRY_MS = 4_000;

let clock: ReturnType<typeof createTestClock>;
let engine: ScriptedEngine;
let resilient: ResilientEngine;
beforeEach(() => {
  clock = createTestClock();
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

/** Waits for a timer of at most `ms`, then advances the clock. */
async function pass(ms: number): Promise<void> {
  await untilTruthy(() => clock.waiting().some((waitingMs) => waitingMs <= ms));
  clock.advance(ms);
}

describe('failures before the first part', () => {
  it('cause a retry after a delay', async () => {
    engine.turns = [failureOf('unavailable'), failureOf('unavailable')];
    const answer = ask();
    await engine.attempted(1);
    await pass(LONGEST_RETRY_MS);
    await engine.attempted(2);
    await pass(LONGEST_RETRY_MS);
    expect((await answer).text).toBe('Hello.');
    expect(engine.attempts).toHaveLength(3);
  });

  it('cause two retries by default, and as many as requested otherwise', async () => {
    engine.turns = [failureOf('unavailable')];
    await expect(ask({ retries: 0 })).rejects.toMatchObject({ code: 'unavailable' });
    expect(engine.attempts).toHaveLength(1);
  });

  it('cause a retry no earlier than Retry-After', async () => {
    engine.turns = [failureOf('rate_limited', 3)];
    const answer = ask();
    await engine.attempted(1);
    await untilTruthy(() => clock.waiting().includes(3_000));
    clock.advance(3_000);
    expect((await answer).text).toBe('Hello.');
  });

  it('cause no retry if Retry-After exceeds the limit', async () => {
    engine.turns = [failureOf('rate_limited', 60)];
    await expect(ask()).rejects.toMatchObject({ code: 'rate_limited', retryAfterS: 60 });
    expect(engine.attempts).toHaveLength(1);
  });

  it.each(['refused', 'context_too_long', 'model_not_found'] as const)('such as %s cause no retry', async (code) => {
    engine.turns = [failureOf(code)];
    await expect(ask()).rejects.toMatchObject({ code });
    expect(engine.attempts).toHaveLength(1);
  });

  it('cause no retry after the caller aborts', async () => {
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

describe('failures behind the first part', () => {
  it('cause no retry', async () => {
    engine.turns = ['breaks'];
    await expect(ask()).rejects.toMatchObject({ code: 'unavailable' });
    expect(engine.attempts).toHaveLength(1);
  });
});

describe('a silent engine', () => {
  it.each(['silent', 'deaf'] as const)('(%s) times out and receives the abort signal', async (turn) => {
    engine.turns = [turn];
    const answer = ask({ patienceMs: 500 });
    await engine.attempted(1);
    await pass(500);
    await expect(answer).rejects.toMatchObject({ code: 'timeout' });
    expect(engine.attempts).toHaveLength(1);
    expect(engine.attempts[0]?.signal.aborted).toBe(true);
  });

  it('with an occasional word times out after an hour', async () => {
    engine.turns = ['trickles'];
    let words = 0;
    engine.onTrickle = () => {
      words += 1;
      clock.advance(50_000);
    };
    await expect(ask()).rejects.toMatchObject({ code: 'timeout', message: expect.stringContaining('come to an end') });
    expect(words).toBe(72);
    expect((await ask()).text).toBe('Hello.');
  });

  it('(deaf) does not delay a caller that aborts', async () => {
    engine.turns = ['deaf'];
    const abort = new AbortController();
    const answer = ask({ signal: abort.signal });
    await engine.attempted(1);
    abort.abort(new Error('gone'));
    await expect(answer).rejects.toThrow('gone');
  });

  it('counts as unavailable when it ends without an answer', async () => {
    engine.turns = ['ends'];
    await expect(ask({ retries: 0 })).rejects.toMatchObject({ code: 'unavailable' });
  });
});

describe('an engine after five failures in a row', () => {
  beforeEach(async () => {
    engine.turns = Array.from({ length: 5 }, () => failureOf('unavailable'));
    for (let time = 0; time < 5; time++) await ask({ retries: 0 }).catch(() => {});
  });

  it('rejects requests for a while, with Retry-After', async () => {
    clock.advance(1_500);
    const message = expect.stringMatching(/several times in a row: as scripted/);
    await expect(ask()).rejects.toMatchObject({ code: 'unavailable', retryAfterS: 4, message });
    expect(engine.attempts).toHaveLength(5);
  });

  it('still answers for other models', async () => {
    expect((await ask({ model: 'big-2.0' })).text).toBe('Hello.');
    await expect(ask()).rejects.toMatchObject({ code: 'unavailable', retryAfterS: 5 });
  });

  it('still lists models, which says nothing about answers', async () => {
    expect(await resilient.models(new AbortController().signal)).toHaveLength(1);
    await expect(ask()).rejects.toMatchObject({ code: 'unavailable', retryAfterS: 5 });
    expect(engine.attempts).toHaveLength(5);
  });

  it('lets a request probe on time although the system clock is set back', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - 3_600_000 });
    await expect(ask()).rejects.toMatchObject({ code: 'unavailable', retryAfterS: 5 });
    clock.advance(5_000);
    expect((await ask()).text).toBe('Hello.');
  });

  it('lets the next request probe after the first prober aborted', async () => {
    clock.advance(5_000);
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
    clock.advance(5_000);
    expect((await ask()).text).toBe('Hello.');
    expect((await Promise.all([ask(), ask()])).map(({ text }) => text)).toEqual(['Hello.', 'Hello.']);
  });

  it('lets one request probe, then all once it succeeded', async () => {
    clock.advance(5_000);
    const abort = new AbortController();
    engine.turns = ['silent'];
    const probe = ask({ signal: abort.signal, patienceMs: 1_000, retries: 0 });
    await engine.attempted(6);
    await expect(ask()).rejects.toMatchObject({ code: 'unavailable', retryAfterS: 1 });
    await pass(1_000);
    await expect(probe).rejects.toMatchObject({ code: 'timeout' });

    // The second failure doubles the wait.
    clock.advance(9_000);
    await expect(ask()).rejects.toMatchObject({ code: 'unavailable', retryAfterS: 1 });
    clock.advance(1_000);
    expect((await ask()).text).toBe('Hello.');
    expect((await ask()).text).toBe('Hello.');
  });
});

describe('circuit breaker', () => {
  it('ignores request errors, failures of a single request and aborts', async () => {
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

describe('a failing model list', () => {
  it('stops after five attempts and does not affect answers', async () => {
    engine.onList = () => Promise.reject(failureOf('unavailable'));
    const { signal } = new AbortController();
    for (let time = 0; time < 7; time++) {
      await expect(resilient.models(signal)).rejects.toMatchObject({ code: 'unavailable' });
    }
    expect(engine.listings).toBe(5);
    expect((await ask()).text).toBe('Hello.');
  });
});

describe('a busy model', () => {
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

  it('limits concurrent answers and queues the others in FIFO order', async () => {
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

  it('does not delay another model', async () => {
    const release = await occupy(2);
    expect((await ask({ model: 'big-2.0' })).model).toBe('big-2.0');
    await release();
  });

  it('rejects requests when the queue is full', async () => {
    const release = await occupy(2);
    const waiting = Array.from({ length: 16 }, () => ask());
    await expect(ask()).rejects.toMatchObject({ code: 'rate_limited', retryAfterS: 2 });
    await release();
    await Promise.all(waiting);
  });

  it('serves workspaces round robin', async () => {
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

  it('drops the last request of the workspace that fills the queue in favour of another', async () => {
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

  it('divides the queue among workspaces up to its limit', async () => {
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

  it('rejects a request that waits too long', async () => {
    const release = await occupy(2);
    const late = ask({ patienceMs: 700 });
    await untilTruthy(() => clock.waiting().includes(700));
    clock.advance(700);
    await expect(late).rejects.toMatchObject({ code: 'rate_limited' });
    await release();
  });

  it('waits longer for its turn than for the answer if configured', async () => {
    const release = await occupy(2);
    const late = ask({ patienceMs: 700, turnWithinMs: 5_000 });
    await untilTruthy(() => clock.waiting().includes(5_000));
    clock.advance(4_999);
    await release();
    expect((await late).text).toBe('Hello.');
  });

  it('removes aborted requests from the queue without losing others', async () => {
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

  it('frees its slot after failures and early returns', async () => {
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
