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

describe('the feed of call events', () => {
  it('tells the watchers of a call, in order, and nobody else', () => {
    const feed = createCallFeed();
    const heard: string[] = [];
    const { signal } = new AbortController();
    feed.watch('call-1', ({ sequence }) => heard.push(`first ${sequence}`), signal);
    feed.watch('call-1', ({ sequence }) => heard.push(`second ${sequence}`), signal);
    feed.watch('call-2', ({ sequence }) => heard.push(`stranger ${sequence}`), signal);
    feed.publish('call-1', EVENT);
    feed.publish('call-1', { ...EVENT, sequence: 2 });
    expect(heard).toEqual(['first 1', 'second 1', 'first 2', 'second 2']);
  });

  it('drops a watcher whose signal is aborted, before or after it began', () => {
    const feed = createCallFeed();
    const heard: string[] = [];
    const gone = new AbortController();
    feed.watch('call-1', () => heard.push('left'), gone.signal);
    gone.abort();
    feed.watch('call-1', () => heard.push('too late'), gone.signal);
    feed.publish('call-1', EVENT);
    expect(heard).toEqual([]);
  });

  it('drops a watcher that throws; whoever publishes and the other watchers do not notice', () => {
    const logger = createTestLogger();
    const feed = createCallFeed({ logger });
    const heard: number[] = [];
    const { signal } = new AbortController();
    const broken = () => {
      throw new Error('the response was closed');
    };
    feed.watch('call-1', broken, signal);
    feed.watch('call-1', ({ sequence }) => heard.push(sequence), signal);
    feed.publish('call-1', EVENT);
    feed.publish('call-1', { ...EVENT, sequence: 2 });
    expect(heard).toEqual([1, 2]);
    expect(logger.messages()).toEqual(['call watcher threw and was removed']);
  });

  it('takes a call by any name for a call, also one that means something to an emitter', () => {
    const feed = createCallFeed();
    expect(() => feed.publish('error', EVENT)).not.toThrow();
  });
});
