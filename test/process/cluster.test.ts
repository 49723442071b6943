import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PublicCall, PublicCallEvent } from '../../actors/call-view.ts';
import { ApiError } from '../../bin/cli/api-client.ts';
import { startCallbackReceiver } from '../../bin/demo/callback-receiver.ts';
import { parseWav } from '../../media/wav.ts';
import { findWorker } from '../../media/webrtc/worker-binary.ts';
import { walletOf } from '../../storage/ledger.ts';
import { untilPlayed } from '../browser/page-tones.ts';
import { hasPhoneBrowser, openPhoneBrowser } from '../browser/phone-page.ts';
import { untilLevel } from '../calls/next-level.ts';
import { untilTruthy } from '../eventually.ts';
import { startLoopbackCarrier } from '../softphone/loopback-carrier.ts';
import { type Softphone, startSoftphone } from '../softphone/softphone.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import {
  callOf,
  clean,
  cleanUp,
  dataFolder,
  fund,
  type Ready,
  redisOfServers,
  startReady,
  untilServersKnowEachOther,
} from './ready-server.ts';

const CALLBACK_SECRET = 'the-secret-of-the-cluster-test';
const RTP_PORTS_EACH = 200;
const AGENT_HZ = 440;
const CUSTOMER_HZ = 660;
const mediaWorker = findWorker().path;

describe('three servers on one database', () => {
  let database: TestDatabase;
  let servers: Ready[];
  let phones: { agent: Softphone; customer: Softphone };
  let receiver: Awaited<ReturnType<typeof startCallbackReceiver>>;

  beforeAll(async () => {
    database = await createTestDatabase();
    clean.push(() => database.drop());
    const redis = await redisOfServers();
    servers = await Promise.all(
      [0, 1, 2].map(async (index) => {
        return await startReady(await dataFolder({ databaseUrl: database.url }), {
          ...redis,
          TANDEM_SECRET_KEY: Buffer.alloc(32, 3).toString('base64'),
          RTP_PORT_MIN: String(37_000 + index * RTP_PORTS_EACH),
          RTP_PORT_MAX: String(37_199 + index * RTP_PORTS_EACH),
          WEBRTC_PORT: '0',
          ...(mediaWorker !== null && { MEDIASOUP_WORKER_BIN: mediaWorker }),
        });
      }),
    );
    phones = {
      agent: await startSoftphone({ name: 'agent', user: '+919811111111' }),
      customer: await startSoftphone({
        name: 'customer',
        user: '+919822222222',
        audio: { kind: 'tone', frequencyHz: CUSTOMER_HZ },
      }),
    };
    const { agent, customer } = phones;
    const carrier = await startLoopbackCarrier({
      routes: new Map([agent, customer].map((phone) => [phone.user, phone.address])),
    });
    receiver = await startCallbackReceiver(CALLBACK_SECRET);
    clean.push(() => Promise.all([agent.stop(), customer.stop(), carrier.stop(), receiver.stop()]));
    const { api, workspaceId } = servers[0]!;
    await api.post('/dialer/trunks', {
      name: 'Loopback',
      sip_uri: carrier.sipUri,
      numbers: ['+911140000001'],
      price_per_minute_usd: 0.6,
    });
    await api.post('/dialer/numbers', { e164: '+911140000001' });
    await fund(database.sql, workspaceId);
    await untilServersKnowEachOther(database.sql, 3);
  });
  afterAll(cleanUp);

  it('control calls of each other, and stream their events', async () => {
    const [one, two] = servers as [Ready, Ready];
    const { call } = await bridgedCallOn(one);
    const streamed: string[] = [];
    const streaming = (async () => {
      for await (const { event } of two.api.events(call.call_id)) streamed.push(event);
    })();
    const path = `/dialer/click2call/${call.call_id}`;
    const held = await command(two, `${path}/hold`, { leg: 'customer' });
    expect(held.call.legs.find(({ leg_id }) => leg_id === 'customer')).toMatchObject({ state: 'held' });
    const { call: ended } = await command(two, `${path}/hangup`);
    expect(ended).toMatchObject({ state: 'completed', hangup_cause: 'NORMAL_CLEARING' });
    await streaming;
    expect(streamed).toContain('call.bridged');
    expect(streamed.at(-1)).toBe('call.completed');
    expect(new Set(streamed).size).toBe(streamed.length);
  });

  it.skipIf(!hasPhoneBrowser)('connect a browser by any of them to a call on another one', async () => {
    const [home, relay, other] = servers as [Ready, Ready, Ready];
    await using browser = await openPhoneBrowser(AGENT_HZ);
    const page = await browser.chromium.open(browser.pageUrl);
    const run = <T>(expression: string, on = page) => on.evaluate<T>(`tests.${expression}`);
    const connectBy = ({ url }: Ready, phoneUrl: string, on = page) =>
      run(`connect(${JSON.stringify(phoneUrl.replace(/(?<=:\/\/)[^/]+/, new URL(url).host))})`, on);

    const minted = await home.api.post<{ url: string }>('/phone/tokens', { purpose: 'agent' });
    expect(new URL(minted.url).host).toBe(new URL(home.url).host);
    await connectBy(relay, minted.url);
    await run("until('welcome')");
    const placed = await other.api.post<{ call: PublicCall }>('/dialer/click2call', {
      agent_endpoint: { type: 'webrtc' },
      customer_number: phones.customer.user,
    });
    const callId = placed.call.call_id;
    expect(await run("until('incoming')")).toMatchObject({ call: { call_id: callId } });
    await run(`answer(${JSON.stringify(callId)})`);
    await untilPlayed({ page, stream: 'tests.stream()' }, CUSTOMER_HZ);
    await untilLevel(phones.customer, AGENT_HZ, { above: -30 });

    await run('dropSocket()');
    await connectBy(other, await run<string>('resumeUrl()'));
    expect(await run("until('welcome')")).toMatchObject({ call: { call_id: callId, state: 'answered' } });
    await run(`answer(${JSON.stringify(callId)})`);
    await untilPlayed({ page, stream: 'tests.stream()' }, CUSTOMER_HZ);
    await untilLevel(phones.customer, AGENT_HZ, { above: -30 });
    await run("request('dtmf', { digit: '7' })");
    await untilTruthy(async () => (await eventsOf(relay, callId)).includes('dtmf.received'), 'the key arrives');

    const supervisor = await browser.chromium.open(browser.pageUrl);
    const elsewhere = await relay.api.post<{ url: string }>('/phone/tokens', { purpose: 'supervise' });
    await connectBy(relay, elsewhere.url, supervisor);
    await command(other, `/dialer/click2call/${callId}/supervise`, { mode: 'listen', endpoint: { type: 'webrtc' } });
    expect(await run("until('incoming')", supervisor)).toMatchObject({ call: { call_id: callId } });
    await run(`answer(${JSON.stringify(callId)})`, supervisor);
    await untilPlayed({ page: supervisor, stream: 'tests.stream()' }, CUSTOMER_HZ);

    await command(relay, `/dialer/click2call/${callId}/hangup`);
    expect(await run("until('ended')")).toMatchObject({ hangup_cause: 'NORMAL_CLEARING' });
    await run("until('ended')", supervisor);
    await settledOn(relay, callId);
    for (const { server } of servers) expect(server.output()).not.toContain('a phone on another node was lost');
  });

  it('take over the calls of a frozen server, which exits without writing when it wakes', async () => {
    const [one, , frozen] = servers as [Ready, Ready, Ready];
    const { call } = await bridgedCallOn(frozen);
    frozen.server.child.kill('SIGSTOP');
    await settledOn(one, call.call_id);
    const before = await eventsOf(one, call.call_id);
    frozen.server.child.kill('SIGCONT');
    expect(await frozen.server.exited).toBe(1);
    expect(frozen.server.output()).toContain('the lease of this node expired');
    expect(await eventsOf(one, call.call_id)).toEqual(before);
    expect(before.slice(-2)).toEqual(['call.unknown', 'call.completed']);
  });

  it('settle the call of a killed server once, with recording and callback, and hang up its phones', async () => {
    const [one, killed] = servers as [Ready, Ready];
    const { call } = await bridgedCallOn(killed, { record: true });
    await phones.customer.untilReceived(({ packets }) => packets > 200);
    killed.server.child.kill('SIGKILL');
    await Promise.all([phones.agent.until('bye'), phones.customer.until('bye')]);
    const callback = await receiver.callbackOf(call.call_id);
    expect(callback).toMatchObject({ verified: { ok: true }, body: { event: 'call.completed' } });
    await untilTruthy(async () => (await callOf(one, call.call_id)).recording_available, 'the recording is stored');
    const settled = await callOf(one, call.call_id);
    expect(settled).toMatchObject({ state: 'completed', error: 'server_lost', billing_status: 'billed' });
    expect(settled.talk_seconds).toBeGreaterThan(0);
    const { recording } = await one.api.post<{ recording: { playback_url: string } }>(
      `/dialer/click2call/${call.call_id}/recording`,
    );
    const wav = parseWav(Buffer.from(await (await fetch(recording.playback_url)).arrayBuffer()));
    expect(wav.durationMs).toBeGreaterThan(0);
    expect(receiver.received.filter(({ body }) => body.data.call.call_id === call.call_id)).toHaveLength(1);
    expect((await walletOf(database.sql, one.workspaceId)).heldNano).toBe(0n);
  });

  async function bridgedCallOn(server: Ready, options: { record?: boolean } = {}): Promise<{ call: PublicCall }> {
    const { agent, customer } = phones;
    const answered = [agent.until('bye'), customer.until('bye')];
    for (const each of answered) each.catch(() => {});
    const placed = await server.api.post<{ call: PublicCall }>('/dialer/click2call', {
      agent_number: agent.user,
      customer_number: customer.user,
      callback_url: receiver.url,
      callback_secret: CALLBACK_SECRET,
      ...options,
    });
    await untilTruthy(
      async () => (await callOf(server, placed.call.call_id)).state === 'bridged',
      'the call is bridged',
    );
    return placed;
  }
});

async function eventsOf({ api }: Ready, callId: string): Promise<string[]> {
  const { events } = await api.get<{ events: PublicCallEvent[] }>(`/dialer/click2call/${callId}/events`);
  return events.map(({ event }) => event);
}

async function settledOn(server: Ready, callId: string): Promise<void> {
  await untilTruthy(async () => (await callOf(server, callId)).state === 'completed', 'the call is settled');
}

/** Clients should repeat a command that is not acknowledged within a second. */
async function command({ api }: Ready, path: string, body?: object): Promise<{ call: PublicCall }> {
  for (let tries = 0; ; tries += 1) {
    try {
      return await api.post<{ call: PublicCall }>(path, body);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'NODE_UNREACHABLE' || tries === 10) throw error;
    }
  }
}
