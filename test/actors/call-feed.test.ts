import { describe, expect, it } from 'vitest';
import { createCallFeed } from '../../actors/call-feed.ts';
import type { PublicCallEvent } from '../../actors/call-view.ts';
import { createTestLogger } from './fakes.ts';

const EVENT: PublicCallEvent = {
  sequence: 1,
  event: 'call.initiated',
  state: 'initiated',
  leg: null,
  sip_status: null,
  hangup_cause: null,
  at: '2026-01-02T03:04:05.678Z',
  detail: null,
  data: null,
  transcript: null,
  delivery: null,
};

describe('call feed', () => {
  it('notifies only the watchers of a call, in order', () => {
    const feed = createCallFeed();
    const received: string[] = [];
    const { signal } = new AbortController();
    feed.watch('call-1', ({ sequence }) => received.push(`first ${sequence}`), signal);
    feed.watch('call-1', ({ sequence }) => received.push(`second ${sequence}`), signal);
    feed.watch('call-2', ({ sequence }) => received.push(`stranger ${sequence}`), signal);
    feed.publish('call-1', EVENT);
    feed.publish('call-1', { ...EVENT, sequence: 2 });
    expect(received).toEqual(['first 1', 'second 1', 'first 2', 'second 2']);
  });

  it('drops a watcher whose signal aborts, even before it subscribes', () => {
    const feed = createCallFeed();
    const received: string[] = [];
    const gone = new AbortController();
    feed.watch('call-1', () => received.push('left'), gone.signal);
    gone.abort();
    feed.watch('call-1', () => received.push('too late'), gone.signal);
    feed.publish('call-1', EVENT);
    expect(received).toEqual([]);
  });

  it('drops a watcher that throws without affecting publisher and other watchers', () => {
    const logger = createTestLogger();
    const feed = createCallFeed({ logger });
    const received: number[] = [];
    const { signal } = new AbortController();
    const broken = () => {
      throw new Error('the response was closed');
    };
    feed.watch('call-1', broken, signal);
    feed.watch('call-1', ({ sequence }) => received.push(sequence), signal);
    feed.publish('call-1', EVENT);
    feed.publish('call-1', { ...EVENT, sequence: 2 });
    expect(received).toEqual([1, 2]);
    expect(logger.messages()).toEqual(['call watcher threw and was removed']);
  });

  it('accepts any call id, even one that is special to an emitter', () => {
    const feed = createCallFeed();
    expect(() => feed.publish('error', EVENT)).not.toThrow();
  });
});
