import { get, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PublicCallEvent } from '../../actors/call-view.ts';
import { streamCallEvents } from '../../http/event-stream.ts';
import { revokeApiKey } from '../../storage/queries/api-keys.ts';
import { untilTruthy } from '../eventually.ts';
import { seedTrunk, seedWorkspace } from '../storage/seed.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { finish, initiate, seedCall } from './seed-calls.ts';

let fixture: HttpFixture;
let member: Member;
let origin: string;
beforeAll(async () => {
  fixture = await createHttpFixture({ heartbeatMs: 20 });
  const { workspace } = await seedWorkspace(fixture.sql);
  member = await fixture.addMemberWith('member', workspace.id);
  await seedTrunk(fixture.sql, { workspaceId: workspace.id });
  origin = await fixture.app.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(() => fixture[Symbol.asyncDispose]());

interface OpenStream {
  response: IncomingMessage;
  text: () => string;
  sequences: () => number[];
  until: (needle: string) => Promise<void>;
  ended: Promise<void>;
}

function openStream(id: string, lastEventId?: string, as = member): Promise<OpenStream> {
  const headers = {
    authorization: `Bearer ${as.key}`,
    ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
  };
  return new Promise((resolve, reject) => {
    get(`${origin}/dialer/click2call/${id}/stream`, { headers }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk) => {
        text += chunk;
      });
      const ended = new Promise<void>((done) => response.once('close', done));
      resolve({
        response,
        text: () => text,
        sequences: () => [...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id)),
        until: async (needle) => {
          await untilTruthy(() => text.includes(needle));
        },
        ended,
      });
    }).on('error', reject);
  });
}

async function latestEvent(callId: string): Promise<PublicCallEvent> {
  const { body } = await fixture.call('GET', `/dialer/click2call/${callId}/events`, { as: member });
  return body.data.events.at(-1);
}

describe('event stream of a call', () => {
  it('replays stored events, continues live, and ends with the terminal event', async () => {
    const { callId } = await seedCall(fixture, { by: member });
    const stream = await openStream(callId);
    expect(stream.response.statusCode).toBe(200);
    expect(stream.response.headers['content-type']).toBe('text/event-stream; charset=utf-8');
    expect(stream.response.headers['x-ratelimit-remaining']).toBeDefined();
    await stream.until('id: 1\n');
    await initiate(fixture, callId);
    fixture.dialer.publish(callId, await latestEvent(callId));
    await stream.until('id: 2\n');
    await finish(fixture, callId);
    fixture.dialer.publish(callId, await latestEvent(callId));
    await stream.ended;
    expect(stream.sequences()).toEqual([1, 2, 3]);
    const data = /^event: call\.not_answered\ndata: (.*)$/m.exec(stream.text())?.[1];
    expect(JSON.parse(data!)).toEqual(await latestEvent(callId));
    expect(fixture.dialer.watcherCount(callId)).toBe(0);
  });

  it('sends heartbeats while idle', async () => {
    const { callId } = await seedCall(fixture, { by: member });
    const stream = await openStream(callId);
    await stream.until(': heartbeat\n\n: heartbeat\n\n');
    stream.response.destroy();
    await untilTruthy(() => fixture.dialer.watcherCount(callId) === 0);
  });

  it('delivers an event between subscribing and reading exactly once', async () => {
    const { callId } = await seedCall(fixture, { by: member });
    await initiate(fixture, callId);
    const event = await latestEvent(callId);
    // Published just before the stream reads the stored events, which contain it.
    fixture.dialer.onWatch = () => fixture.dialer.publish(callId, event);
    const stream = await openStream(callId);
    fixture.dialer.onWatch = () => undefined;
    await stream.until('id: 2\n');
    await finish(fixture, callId);
    fixture.dialer.publish(callId, event);
    fixture.dialer.publish(callId, await latestEvent(callId));
    await stream.ended;
    expect(stream.sequences()).toEqual([1, 2, 3]);
  });

  it('fetches unpublished events from storage', async () => {
    const { callId } = await seedCall(fixture, { by: member });
    const stream = await openStream(callId);
    await stream.until('id: 1\n');
    await initiate(fixture, callId);
    await finish(fixture, callId);
    fixture.dialer.publish(callId, await latestEvent(callId));
    await stream.ended;
    expect(stream.sequences()).toEqual([1, 2, 3]);
  });

  it('resumes after Last-Event-ID, and answers 204 after the terminal event', async () => {
    const { callId } = await seedCall(fixture, { by: member });
    await initiate(fixture, callId);
    await finish(fixture, callId);
    const resumed = await openStream(callId, '1');
    await resumed.ended;
    expect(resumed.sequences()).toEqual([2, 3]);
    const over = await openStream(callId, '3');
    await over.ended;
    expect([over.response.statusCode, over.text()]).toEqual([204, '']);
    const nonsense = await openStream(callId, 'nonsense');
    await nonsense.ended;
    expect(nonsense.sequences()).toEqual([1, 2, 3]);
  });

  it('continues with the next event when Last-Event-ID is beyond the last one', async () => {
    const { callId } = await seedCall(fixture, { by: member });
    const stream = await openStream(callId, '999');
    await stream.until('retry: ');
    await finish(fixture, callId);
    fixture.dialer.publish(callId, await latestEvent(callId));
    await stream.ended;
    expect(stream.sequences()).toEqual([2]);
  });

  it('ends when its key is revoked', async () => {
    const { callId } = await seedCall(fixture, { by: member });
    const leaver = await fixture.addMemberWith('member', member.workspaceId);
    const stream = await openStream(callId, undefined, leaver);
    await stream.until(': heartbeat');
    await revokeApiKey(fixture.sql, { id: leaver.keyId, workspaceId: leaver.workspaceId, now: fixture.now.current });
    await stream.ended;
    expect(fixture.dialer.watcherCount(callId)).toBe(0);
  });

  it('ends when the server closes', async () => {
    await using closing = await createHttpFixture();
    const { workspace } = await seedWorkspace(closing.sql);
    const watcher = await closing.addMemberWith('member', workspace.id);
    await seedTrunk(closing.sql, { workspaceId: workspace.id });
    const { callId } = await seedCall(closing, { by: watcher });
    const address = await closing.app.listen({ host: '127.0.0.1', port: 0 });
    const response = await fetch(`${address}/dialer/click2call/${callId}/stream`, {
      headers: { authorization: `Bearer ${watcher.key}` },
    });
    const body = response.text();
    await untilTruthy(() => closing.dialer.watcherCount(callId) === 1);
    await closing.app.close();
    expect(await body).toContain('retry: ');
  });
});

it('delivers an event that commits while the stream reads the stored ones', async () => {
  const published = new Set<(event: PublicCallEvent) => void>();
  const stream = streamCallEvents({
    afterSequence: 0,
    watch: (listener) => void published.add(listener),
    loadEvents: async () => {
      for (const publish of published) publish(eventOf(2, 'completed'));
      return [eventOf(1, 'bridged')];
    },
    heartbeatMs: 10,
    signal: AbortSignal.timeout(25_000),
  });
  const frames: string[] = [];
  for await (const frame of stream) frames.push(frame);
  expect(frames.join('')).toMatch(/id: 1\n[\s\S]*id: 2\n/);
});

describe('event stream with a slow reader', () => {
  it('delivers every event by reading it back from storage', async () => {
    const log = Array.from({ length: 500 }, (_, index) => eventOf(index + 1, index === 499 ? 'completed' : 'bridged'));
    let publish: (event: PublicCallEvent) => void = () => undefined;
    let stored = 1;
    const stream = streamCallEvents({
      afterSequence: 0,
      watch: (listener) => {
        publish = listener;
      },
      loadEvents: async (after) => log.slice(after, stored),
      heartbeatMs: 1000,
      signal: new AbortController().signal,
    });
    await stream.next();
    const frames = [(await stream.next()).value];
    stored = log.length;
    for (const event of log.slice(1)) publish(event);
    for await (const frame of stream) frames.push(frame);
    expect(frames.map((frame) => Number(/^id: (\d+)/.exec(frame as string)?.[1]))).toEqual(
      log.map(({ sequence }) => sequence),
    );
  });
});

function eventOf(sequence: number, state: PublicCallEvent['state']): PublicCallEvent {
  const rest = {
    leg: null,
    sip_status: null,
    hangup_cause: null,
    detail: null,
    data: null,
    transcript: null,
    delivery: null,
  };
  return { sequence, event: `call.${state}`, state, at: '2026-01-02T03:04:05.678Z', ...rest };
}
