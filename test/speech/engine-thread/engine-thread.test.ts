import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { EngineThread } from '../../../speech/engine-thread/engine-thread.ts';
import { StandingThread } from '../../../speech/engine-thread/standing-thread.ts';
import type { GatedCalls } from './gated-thread.ts';

const closing: { close: () => Promise<void> }[] = [];
let gate: Int32Array;

beforeEach(() => {
  gate = new Int32Array(new SharedArrayBuffer(4));
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
});

afterEach(async () => {
  vi.useRealTimers();
  openGate();
  await Promise.all(closing.splice(0).map((thread) => thread.close()));
});

function options() {
  return {
    entry: new URL('./gated-thread.ts', import.meta.url),
    data: { gate },
    name: 'the gated thread',
    onNotice: () => {},
    toError: ({ message }: { message: string }) => new Error(message),
    toLoss: (detail: string) => new Error(`lost: ${detail}`),
  };
}

function start(): EngineThread<GatedCalls, string, never> {
  const thread = new EngineThread<GatedCalls, string, never>(options());
  closing.push(thread);
  return thread;
}

function openGate(): void {
  Atomics.store(gate, 0, 1);
  Atomics.notify(gate, 0);
}

describe('a thread with engines', () => {
  it('is waited for while it loads, however long an overloaded machine takes', async () => {
    const thread = start();
    vi.advanceTimersByTime(120_000);
    openGate();
    expect(await thread.ready).toBe('as can be');
    expect(await thread.call('echo', { text: 'here' })).toBe('here');
  });

  it('is given up when it does not start at all', async () => {
    const thread = start();
    vi.advanceTimersByTime(600_000);
    await expect(thread.ready).rejects.toThrow('lost: the gated thread did not start');
    expect(await thread.ended).toBe('the gated thread did not start');
  });

  it('is ended when it is stuck once it has started, and fails what it was asked', async () => {
    openGate();
    const thread = start();
    await thread.ready;
    const hanging = thread.call('hang', {});
    vi.advanceTimersByTime(30_000);
    await expect(hanging).rejects.toThrow('lost: the gated thread hung');
    await expect(thread.call('echo', { text: 'late' })).rejects.toThrow('lost: the gated thread hung');
  });

  it('is closed while it starts, without waiting for it', async () => {
    const thread = start();
    await thread.close();
    await expect(thread.ready).rejects.toThrow('lost: the gated thread ended');
  });
});

describe('a thread that stands', () => {
  it('tells those who wait for it when it is closed that it is, while it starts and while it starts anew', async () => {
    const lost = Promise.withResolvers<string>();
    const stand = () =>
      new StandingThread<GatedCalls, string, never>({
        ...options(),
        onReady: () => {},
        onLost: lost.resolve,
        toClosed: () => new Error('closed'),
      });
    const starting = stand();
    const waiting = starting.get();
    await Promise.all([starting.close(), expect(waiting).rejects.toThrow('closed')]);

    openGate();
    const dying = stand();
    const thread = await dying.get();
    await expect(thread.call('die', {})).rejects.toThrow('lost');
    await lost.promise;
    const next = dying.get();
    await Promise.all([dying.close(), expect(next).rejects.toThrow('closed')]);
    await expect(dying.get()).rejects.toThrow('closed');
  });
});
