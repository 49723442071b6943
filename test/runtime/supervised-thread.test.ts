import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { StandingThread } from '../../runtime/standing-thread.ts';
import {
  SupervisedThread,
  THREAD_CLOSED,
  type ThreadError,
  type ThreadOptions,
} from '../../runtime/supervised-thread.ts';
import { eventually } from '../eventually.ts';
import type { GatedThread } from './gated-thread.ts';

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

function options(): ThreadOptions<GatedThread> {
  return {
    entry: new URL('./gated-thread.ts', import.meta.url),
    data: { gate },
    name: 'the gated thread',
    drainWithinMs: 1,
  };
}

function start(overrides: Partial<ThreadOptions<GatedThread>> = {}): SupervisedThread<GatedThread> {
  const thread = new SupervisedThread<GatedThread>({ ...options(), ...overrides });
  closing.push(thread);
  return thread;
}

function openGate(): void {
  Atomics.store(gate, 0, 1);
  Atomics.notify(gate, 0);
}

function lostOrClosed({ code, message }: ThreadError): Error {
  return new Error(code === THREAD_CLOSED ? 'closed' : `lost: ${message}`);
}

describe('supervised thread', () => {
  it('may load slowly on a busy machine', async () => {
    const thread = start();
    vi.advanceTimersByTime(120_000);
    openGate();
    expect(await thread.ready).toBe('as can be');
    expect(await thread.call('echo', { text: 'here' })).toBe('here');
  });

  it('ends if it never starts', async () => {
    const thread = start({ toError: lostOrClosed });
    vi.advanceTimersByTime(600_000);
    await expect(thread.ready).rejects.toThrow('lost: the gated thread did not start');
    expect((await thread.ended).message).toBe('the gated thread did not start');
  });

  it('ends and fails its calls if it stops answering', async () => {
    openGate();
    const thread = start({ toError: lostOrClosed });
    await thread.ready;
    const hanging = thread.call('hang', {});
    vi.advanceTimersByTime(30_000);
    await expect(hanging).rejects.toThrow('lost: the gated thread hung');
    await expect(thread.call('echo', { text: 'late' })).rejects.toThrow('lost: the gated thread hung');
  });

  it('stays alive while it answers anything, even if pings wait behind calls', async () => {
    openGate();
    const thread = start();
    await thread.ready;
    const slow = [thread.call('hang', {}), thread.call('hang', {}), thread.call('hang', {})];
    for (const answer of slow) {
      // One more missed beat would end it.
      vi.advanceTimersByTime(15_000);
      await eventually(() => expect(Atomics.notify(gate, 0, 1)).toBe(1));
      await answer;
    }
    expect(thread.isAlive).toBe(true);
  });

  it('may block while unwatched', async () => {
    openGate();
    const thread = start({ isWatched: false });
    await thread.ready;
    const hanging = expect(thread.call('hang', {})).rejects.toThrow('the gated thread ended');
    vi.advanceTimersByTime(600_000);
    expect(thread.isAlive).toBe(true);
    await thread.terminate();
    await hanging;
    expect(thread.isAlive).toBe(false);
  });

  it('closes during start without waiting', async () => {
    const thread = start({ toError: lostOrClosed });
    await thread.close();
    await expect(thread.ready).rejects.toThrow('lost: the gated thread ended');
  });

  it('closes if its work does not end in time', async () => {
    openGate();
    const thread = start();
    await thread.call('holdDrain', {});
    await thread.close();
    expect((await thread.ended).code).toBe('thread-lost');
  });

  it('processes notices and calls in order, and reports', async () => {
    openGate();
    const reports: string[] = [];
    const thread = start({ onReport: (report) => reports.push(report) });
    thread.post('one');
    const noted = thread.call('noted', {});
    thread.post('two');
    expect(await noted).toEqual(['one']);
    expect(await thread.dump()).toEqual({ noted: 2 });
    expect(reports).toEqual(['noted one', 'noted two']);
  });

  it('returns code and message of an error', async () => {
    openGate();
    const thread = start();
    await expect(thread.call('fail', { code: 'broken' })).rejects.toMatchObject({
      code: 'broken',
      message: 'as asked',
    });
    await expect(thread.call('fail', { code: null })).rejects.toMatchObject({ code: null, message: 'as asked' });
  });

  it('lets the process exit while idle, if configured', () => {
    const owner = fileURLToPath(new URL('./idle-owner.ts', import.meta.url));
    const { stdout, signal } = spawnSync(process.execPath, [owner], { encoding: 'utf8', timeout: 60_000 });
    expect({ stdout, signal }).toEqual({ stdout: 'answered', signal: null });
  });
});

describe('standing thread', () => {
  it('replaces a dead thread', async () => {
    openGate();
    const lost = Promise.withResolvers<string>();
    const standing = new StandingThread<GatedThread>({ ...options(), onLost: lost.resolve });
    closing.push(standing);
    const first = await standing.get();
    await expect(first.call('die', {})).rejects.toMatchObject({ code: 'thread-lost' });
    expect(await lost.promise).toBe('the gated thread ended (code 1)');
    expect(standing.current).toBeNull();
    const second = await standing.get();
    expect(second).not.toBe(first);
    expect(await second.call('echo', { text: 'back' })).toBe('back');
    expect([standing.current, standing.restarts]).toEqual([second, 1]);
  });

  it('reports close to all waiters, during start and restart', async () => {
    const lost = Promise.withResolvers<string>();
    const stand = () => new StandingThread<GatedThread>({ ...options(), toError: lostOrClosed, onLost: lost.resolve });
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
