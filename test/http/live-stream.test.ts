import { createHash, randomBytes } from 'node:crypto';
import { get, type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import { EventSource } from 'undici';
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import type { FeedItem } from '../../http/live/change-feed.ts';
import { streamLiveCalls } from '../../http/live/live-stream.ts';
import type { OutboxLimits } from '../../http/live/outbox.ts';
import { createApiKey, revokeApiKey } from '../../storage/queries/api-keys.ts';
import { addSegment, openTranscript } from '../../storage/queries/transcripts.ts';
import { eventually } from '../eventually.ts';
import { recordMoves } from '../storage/record-moves.ts';
import { later, NOW, seedTrunk, seedWorkspace } from '../storage/seed.ts';
import { createHttpFixture, type HttpFixture, type Member } from './fixture.ts';
import { sessionOf } from './identity-fixture.ts';
import { finish, initiate, seedCall } from './seed-calls.ts';

let fixture: HttpFixture;
let member: Member;
let origin: string;
beforeAll(async () => {
  fixture = await createHttpFixture({ heartbeatMs: 50 });
  const { workspace } = await seedWorkspace(fixture.sql);
  member = await fixture.addMemberWith('member', workspace.id);
  await seedTrunk(fixture.sql, { workspaceId: workspace.id });
  origin = await fixture.app.listen({ host: '127.0.0.1', port: 0 });
});
afterAll(() => fixture[Symbol.asyncDispose]());

interface ReceivedEvent {
  id: string | null;
  event: string;
  // biome-ignore lint/suspicious/noExplicitAny: each event has data of its own
  data: any;
}

class Client {
  text = '';
  readonly response: IncomingMessage;
  readonly ended: Promise<void>;

  constructor(response: IncomingMessage) {
    this.response = response;
    this.ended = new Promise((resolve) => response.once('close', resolve));
    response.setEncoding('utf8').on('data', (chunk) => {
      this.text += chunk;
    });
  }

  /** Events in full; heartbeats excluded. */
  get events(): ReceivedEvent[] {
    return this.text
      .split('\n\n')
      .slice(0, -1)
      .flatMap((frame) => {
        const fields = new Map(frame.split('\n').map((line) => line.split(/: (.*)/s, 2) as [string, string]));
        const event = fields.get('event');
        if (event === undefined) return [];
        return [{ id: fields.get('id') ?? null, event, data: JSON.parse(fields.get('data')!) }];
      });
  }

  of(event: string) {
    return this.events.filter((one) => one.event === event).map(({ data }) => data);
  }

  /** `event` and resulting state for each event of a call. */
  movesOf(callId: string): string[] {
    return this.of('call')
      .filter(({ call }) => call.call_id === callId)
      .flatMap(({ events }) => events.map(({ event }: { event: string }) => event));
  }

  get lastEventId(): string {
    return [...this.text.matchAll(/^id: (.*)$/gm)].at(-1)?.[1] ?? '';
  }
}

interface OpenOptions {
  as?: Member;
  lastEventId?: string;
  /** Default: the server of the fixture. */
  at?: string;
}

function open({ as = member, lastEventId, at = origin }: OpenOptions = {}): Promise<Client> {
  const headers = {
    authorization: `Bearer ${as.key}`,
    ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
  };
  return new Promise((resolve, reject) => {
    const request = get(`${at}/dialer/stream`, { headers }, (response) => resolve(new Client(response)));
    request.on('error', reject);
    onTestFinished(() => void request.destroy());
  });
}

async function opened(options?: OpenOptions): Promise<Client> {
  const client = await open(options);
  await eventually(() => expect(client.events.length).toBeGreaterThan(0));
  return client;
}

const changed = (as = member) => fixture.liveCalls.publish(as.workspaceId, { type: 'changed' });

describe('stream of live calls', () => {
  it('starts with the live calls and continues with their events and with new calls', async () => {
    const live = await seedCall(fixture, { by: member, metadata: { note: '\u2028\n\nevent: call\ndata: {}' } });
    const over = await seedCall(fixture, { by: member });
    await finish(fixture, over.callId);
    const client = await opened();
    expect(client.response.headers['content-type']).toBe('text/event-stream; charset=utf-8');
    const [snapshot] = client.of('snapshot');
    const { body } = await fixture.call('GET', `/dialer/click2call/${live.callId}`, { as: member });
    const shown = snapshot.calls.find(({ call_id }: { call_id: string }) => call_id === live.callId);
    expect(shown).toEqual({ ...body.data.call, sequence: 1, price_per_minute_usd: 0.06, cost_so_far_usd: 0 });
    expect(snapshot.calls.map(({ call_id }: { call_id: string }) => call_id)).not.toContain(over.callId);
    expect(snapshot.truncated).toBe(false);

    await initiate(fixture, live.callId);
    changed();
    await eventually(() => expect(client.movesOf(live.callId)).toEqual(['call.initiated']));
    const created = await seedCall(fixture, { by: member });
    await finish(fixture, created.callId);
    changed();
    await eventually(() => expect(client.movesOf(created.callId)).toEqual(['call.pending', 'call.not_answered']));
    await finish(fixture, live.callId);
    changed();
    await eventually(() => expect(client.movesOf(live.callId)).toEqual(['call.initiated', 'call.not_answered']));
    const {
      metadata: _,
      callback_url: __,
      callback_secret_last4: ___,
      ...ended
    } = (await fixture.call('GET', `/dialer/click2call/${live.callId}`, { as: member })).body.data.call;
    expect(client.of('call').at(-1).call).toMatchObject({ ...ended, call_done: true, sequence: 3 });
  });

  it('polls for unreported events', async () => {
    const client = await opened();
    const { callId } = await seedCall(fixture, { by: member });
    await eventually(() => expect(client.movesOf(callId)).toEqual(['call.pending']));
  });

  it('resumes with everything since the client disconnected', async () => {
    const kept = await seedCall(fixture, { by: member });
    const first = await opened();
    await initiate(fixture, kept.callId);
    changed();
    await eventually(() => expect(first.movesOf(kept.callId)).toEqual(['call.initiated']));
    first.response.destroy();
    const { lastEventId } = first;
    await finish(fixture, kept.callId);
    const placed = await seedCall(fixture, { by: member });
    await initiate(fixture, placed.callId);
    const second = await opened({ lastEventId });
    expect(second.of('snapshot')).toEqual([]);
    expect(second.movesOf(kept.callId)).toEqual(['call.not_answered']);
    expect(second.movesOf(placed.callId)).toEqual(['call.pending', 'call.initiated']);
  });

  it('resumes from the id of a heartbeat', async () => {
    const client = await opened();
    const { callId } = await seedCall(fixture, { by: member });
    await eventually(() => expect(client.movesOf(callId)).toEqual(['call.pending']));
    const before = client.text.length;
    await eventually(() => expect(client.text.slice(before)).toMatch(/: heartbeat\nid: .+\n\n: heartbeat\nid: .+\n\n/));
    client.response.destroy();
    await initiate(fixture, callId);
    const resumed = await opened({ lastEventId: client.lastEventId });
    expect(resumed.movesOf(callId)).toEqual(['call.initiated']);
  });

  it('loses and repeats nothing over repeated disconnections', async () => {
    const { callId } = await seedCall(fixture, { by: member });
    let client = await opened();
    let { lastEventId } = client;
    const expected: string[] = [];
    const received: string[] = [];
    for (let round = 0; round < 10; round++) {
      const event = `agent.ringing${round}`;
      const rest = { leg: null, sipStatus: null, hangupCause: null, detail: null };
      await recordMoves(fixture.sql, callId, [{ event, state: 'pending', at: later(round), ...rest }]);
      expected.push(event);
      // Disconnects before or after the event arrives.
      if (round % 2 === 0) await eventually(() => expect(client.movesOf(callId)).toContain(event));
      client.response.destroy();
      await client.ended;
      received.push(...client.movesOf(callId));
      lastEventId = client.lastEventId || lastEventId;
      client = await open({ lastEventId });
    }
    await eventually(() => expect([...received, ...client.movesOf(callId)]).toEqual(expected));
    await finish(fixture, callId);
  });

  it('resumes on a server that started later', async () => {
    const { callId } = await seedCall(fixture, { by: member });
    const before = await opened();
    before.response.destroy();
    await initiate(fixture, callId);
    await using restarted = await createHttpFixture({ sql: fixture.sql, heartbeatMs: 50 });
    const address = await restarted.app.listen({ host: '127.0.0.1', port: 0 });
    const after = await opened({ lastEventId: before.lastEventId, at: address });
    expect(after.movesOf(callId)).toEqual(['call.initiated']);
    expect(after.of('snapshot')).toEqual([]);
    await restarted.app.close();
    await after.ended;
    await finish(fixture, callId);
  });

  it.each([
    ['nonsense', 'nonsense'],
    ['a cursor that Postgres refuses', `${NOW.getTime()}-9:3:`],
    ['a cursor of another database', `${NOW.getTime()}-9000000000000000000:9000000000000000000:`],
    ['an id of long ago', `${NOW.getTime() - 16 * 60_000}-1:1:`],
    ['an id of the future', `${NOW.getTime() + 16 * 60_000}-1:1:`],
    ['a long id', `${NOW.getTime()}-1:2:${'1,'.repeat(4000)}`],
    ['SQL', `${NOW.getTime()}-1:1:'; drop table calls; --`],
  ])('starts with a new snapshot after %s', async (_, lastEventId) => {
    const client = await opened({ lastEventId });
    expect(client.events[0]!.event).toBe('snapshot');
  });

  it('starts with a new snapshot after too many missed events', async () => {
    const { callId } = await seedCall(fixture, { by: member });
    const client = await opened();
    client.response.destroy();
    const rest = { leg: null, sipStatus: null, hangupCause: null, detail: null };
    const moves = Array.from({ length: 1001 }, (_, index) => {
      return { event: 'dtmf.received', state: 'initiated', at: later(index), ...rest } as const;
    });
    await recordMoves(fixture.sql, callId, moves);
    const resumed = await opened({ lastEventId: client.lastEventId });
    expect(resumed.of('snapshot')).toHaveLength(1);
    expect(resumed.of('call')).toEqual([]);
    await finish(fixture, callId);
  });

  it('sends levels and quality when measured', async () => {
    const { callId } = await seedCall(fixture, { by: member });
    const client = await opened();
    const levels = { agent: { levelDbov: -20, isSpeaking: true }, customer: { levelDbov: -96, isSpeaking: false } };
    fixture.liveCalls.publish(member.workspaceId, { type: 'levels', callId, levels });
    const measured = {
      codec: 'PCMU',
      packets_received: 10,
      packets_lost: 1,
      jitter_ms: 2,
      mos: 4,
      snr_db: null,
    } as const;
    const quality = { agent: { ...measured, encryption: null }, customer: null };
    fixture.liveCalls.publish(member.workspaceId, { type: 'quality', callId, quality });
    await eventually(() => expect(client.of('quality')).toHaveLength(1));
    expect(client.of('level')).toEqual([
      {
        call_id: callId,
        legs: [
          { leg: 'agent', level_dbov: -20, speaking: true },
          { leg: 'customer', level_dbov: -96, speaking: false },
        ],
      },
    ]);
    expect(client.of('quality')).toEqual([{ call_id: callId, legs: [{ leg: 'agent', ...quality.agent }] }]);
  });

  it('returns the cost of the conversation so far', async () => {
    const { callId } = await seedCall(fixture, { by: member });
    const rest = { leg: null, sipStatus: null, hangupCause: null, detail: null };
    const answerTime = new Date(fixture.now.current.getTime() - 30_500);
    await recordMoves(fixture.sql, callId, [{ event: 'call.bridged', state: 'bridged', at: later(0), ...rest }], {
      answerTime,
    });
    const client = await opened();
    const shown = client.of('snapshot')[0].calls.find(({ call_id }: { call_id: string }) => call_id === callId);
    expect(shown).toMatchObject({ answer_time: answerTime.toISOString(), cost_so_far_usd: 0.031, cost_usd: null });
    await finish(fixture, callId);
  });
});

describe('access to the stream of live calls', () => {
  it("covers a viewer's own workspace only", async () => {
    const viewer = await fixture.addMemberWith('viewer', member.workspaceId);
    const stranger = await fixture.addWorkspace();
    const [watching, strange] = [await opened({ as: viewer }), await opened({ as: stranger })];
    const { callId } = await seedCall(fixture, { by: member });
    changed();
    changed(stranger);
    await eventually(() => expect(watching.movesOf(callId)).toEqual(['call.pending']));
    expect(watching.of('call').at(-1).call.customer_number).toMatch(/^\+91/);
    await eventually(() => expect(strange.text).toContain(': heartbeat'));
    expect(strange.of('snapshot')).toEqual([{ calls: [], truncated: false }]);
    expect(strange.of('call')).toEqual([]);
    // The event id of the other workspace does not help.
    const resumed = await open({ as: stranger, lastEventId: watching.lastEventId });
    await eventually(() => expect(resumed.text).toContain(': heartbeat'));
    expect(resumed.text).not.toContain(callId);
  });

  it('includes the transcript only for users who may read it', async () => {
    const colleague = await fixture.addMemberWith('member', member.workspaceId);
    const own = await opened();
    const [theirs, unscoped] = [
      await opened({ as: colleague }),
      await opened({ as: await addKey(member, ['calls:read']) }),
    ];
    const call = await seedCall(fixture, { by: member, transcribe: true });
    const text = 'he said \u2028 <script>\n\nevent: call';
    const segment = { text, startMs: 1500, endMs: 2500, confidence: 0.5 };
    await fixture.sql.begin(async (tx) => {
      await openTranscript(tx, { callId: call.callId, now: later(1) });
      const said = { ...segment, leg: 'agent', utteranceId: 1, language: 'en', words: [] };
      await addSegment(tx, call, { segment: said, eventSequence: 2, now: later(1) });
      const move = { event: 'transcript.final', state: 'bridged', leg: 'agent', segment, data: null } as const;
      const rest = { sipStatus: null, hangupCause: null, detail: null };
      await recordMoves(tx, call.callId, [{ ...move, at: later(2), ...rest }]);
    });
    changed();
    const spoken = { call_id: call.callId, leg: 'agent', role: 'agent', text, start: 1.5, end: 2.5 };
    await eventually(() => {
      expect(own.of('transcript')).toEqual([{ ...spoken, is_final: true, language: 'en', confidence: 0.5 }]);
    });
    const hypothesis = { callId: call.callId, leg: 'agent', role: 'agent', text: 'he', startMs: 3000, endMs: 3100 };
    const access = { direction: 'outbound', createdByUserId: member.userId } as const;
    fixture.liveCalls.publish(member.workspaceId, { type: 'hypothesis', hypothesis: { ...hypothesis, access } });
    await eventually(() => {
      const [, interim] = own.of('transcript');
      expect(interim).toMatchObject({ text: 'he', is_final: false, start: 3, end: 3.1, confidence: null });
    });
    for (const other of [theirs, unscoped]) {
      await eventually(() => expect(other.movesOf(call.callId)).toContain('transcript.final'));
      expect(other.of('transcript')).toEqual([]);
      expect(other.text).not.toContain('he said');
    }
    await finish(fixture, call.callId);
  });

  it('rejects a key without the scope, missing credentials, and a session without workspace', async () => {
    const scoped = await addKey(member, ['recordings:read']);
    const answers = [
      await fixture.call('GET', '/dialer/stream', { as: scoped }),
      await fixture.call('GET', '/dialer/stream', { as: null }),
      await fixture.call('POST', '/dialer/stream-token', { as: scoped }),
    ];
    expect(answers.map(({ status }) => status)).toEqual([403, 401, 403]);
    const token = await sessionOf(fixture, member);
    const headers = { authorization: `Bearer ${token}` };
    const anywhere = await fixture.call('GET', '/dialer/stream', { as: null, headers });
    expect([anywhere.status, anywhere.body.code]).toEqual([404, 'WORKSPACE_NOT_FOUND']);
    const url = `/dialer/stream?workspace_id=${member.workspaceId}`;
    expect((await fixture.call('GET', url, { as: null, headers })).status).toBe(200);
  });

  it('opens with a standard EventSource and a token, which opens no other stream', async () => {
    const { body } = await fixture.call('POST', '/dialer/stream-token', { as: member });
    const { token, url } = body.data as { token: string; url: string };
    expect(url).toBe(`http://voice.test/dialer/stream?token=${token}`);
    const source = new EventSource(url.replace('http://voice.test', origin));
    onTestFinished(() => source.close());
    const received: string[] = [];
    for (const event of ['snapshot', 'call']) source.addEventListener(event, () => void received.push(event));
    await eventually(() => expect(received).toEqual(['snapshot']));
    const { callId } = await seedCall(fixture, { by: member });
    await eventually(() => expect(received).toEqual(['snapshot', 'call']));
    const other = await fixture.call('GET', `/dialer/click2call/${callId}/stream?token=${token}`, { as: null });
    expect([other.status, other.body.code]).toEqual([403, 'FORBIDDEN']);
    const ofCall = await fixture.call('POST', `/dialer/click2call/${callId}/stream-token`, { as: member });
    const wrong = await fixture.call('GET', `/dialer/stream?token=${ofCall.body.data.token}`, { as: null });
    expect([wrong.status, wrong.body.code]).toEqual([403, 'FORBIDDEN']);
  });

  it('ends when its key is revoked, and leaves no watcher', async () => {
    const stranger = await fixture.addWorkspace();
    const client = await opened({ as: stranger });
    expect(fixture.liveCalls.watcherCount(stranger.workspaceId)).toBe(1);
    await revokeApiKey(fixture.sql, { ...{ id: stranger.keyId, workspaceId: stranger.workspaceId }, now: NOW });
    await client.ended;
    await eventually(() => expect(fixture.liveCalls.watcherCount(stranger.workspaceId)).toBe(0));
  });
});

describe('live stream of a demoted admin', () => {
  it('ends at the next heartbeat if another process changed the role', async () => {
    const admin = await fixture.addMemberWith('admin');
    const client = await opened({ as: admin });
    await fixture.sql`update memberships set role = 'member' where user_id = ${admin.userId}`;
    await client.ended;
  });
});

describe('slow client of the live stream', () => {
  const stream = (received: { overflows: number }, limits: OutboxLimits) => {
    let publish: (item: FeedItem) => void = () => undefined;
    const frames = streamLiveCalls({
      ...{ sql: fixture.sql, workspaceId: member.workspaceId, lastEventId: undefined, limits, heartbeatMs: 60_000 },
      subscribe: async (listener) => {
        publish = listener;
      },
      mayReadTranscript: () => true,
      onOverflow: () => void received.overflows++,
      now: () => NOW,
      signal: new AbortController().signal,
    });
    return { frames, publish: (item: FeedItem) => publish(item) };
  };
  const levels = (callId: string, levelDbov: number) => {
    const news = { type: 'levels', callId, levels: { agent: { levelDbov, isSpeaking: false } } } as const;
    return { type: 'news', news } as const;
  };

  it('loses old levels first, so that a short delay loses no events', async () => {
    const received = { overflows: 0 };
    const { frames, publish } = stream(received, { maxFrames: 3, maxBytes: 10_000 });
    await frames.next();
    await frames.next();
    for (let level = -90; level < 0; level++) for (const call of ['a', 'b']) publish(levels(call, level));
    const { value } = await frames.next();
    expect([...value!.matchAll(/"level_dbov":(-?\d+)/g)].map(([, level]) => level)).toEqual(['-1', '-1']);
    expect(received.overflows).toBe(0);
    await frames.return();
  });

  it.each([
    ['frames', { maxFrames: 20, maxBytes: 1_000_000 }],
    ['bytes', { maxFrames: 1000, maxBytes: 2000 }],
  ])('receives a reason and is dropped when too many %s wait', async (_, limits) => {
    const received = { overflows: 0 };
    const { frames, publish } = stream(received, limits);
    await frames.next();
    await frames.next();
    for (let call = 0; call < 100; call++) publish(levels(`call ${call}`, -1));
    const { value } = await frames.next();
    expect(value).toMatch(/^event: dropped\ndata: \{"reason":"slow_client"/);
    expect(value).not.toContain('id: ');
    expect((await frames.next()).done).toBe(true);
    expect(received.overflows).toBe(1);
  });

  it('loses its connection when it reads nothing', async () => {
    await using slow = await createHttpFixture({ sql: fixture.sql, heartbeatMs: 50, stallTimeoutMs: 100 });
    const address = await slow.app.listen({ host: '127.0.0.1', port: 0 });
    const { hostname, port } = new URL(address);
    const socket = connect({ host: hostname, port: Number(port) });
    onTestFinished(() => void socket.destroy());
    socket.on('error', () => {});
    socket.pause();
    socket.write(`GET /dialer/stream HTTP/1.1\r\nHost: ${hostname}\r\nAuthorization: Bearer ${member.key}\r\n\r\n`);
    await eventually(() => expect(slow.liveCalls.watcherCount(member.workspaceId)).toBe(1));
    // Distinct calls, because each keeps only its latest level; long enough to fill the socket buffers.
    const callId = 'x'.repeat(100_000);
    let sent = 0;
    await eventually(() => {
      for (let call = 0; call < 10; call++) {
        slow.liveCalls.publish(member.workspaceId, levels(`${callId}${sent++}`, -1).news);
      }
      expect(slow.liveCalls.watcherCount(member.workspaceId)).toBe(0);
    });
    expect(slow.logLines.join('')).toContain('dropped a slow client');
  });
});

async function addKey({ workspaceId, userId }: Member, scopes: string[]): Promise<Member> {
  const key = `sk_${randomBytes(24).toString('base64url')}`;
  const { id: keyId } = await createApiKey(fixture.sql, {
    ...{ workspaceId, createdByUserId: userId, name: 'limited', scopes, now: NOW },
    ...{ prefix: key.slice(0, 7), last4: key.slice(-4), keyHash: createHash('sha256').update(key).digest() },
  });
  return { key, keyId, userId, workspaceId };
}
