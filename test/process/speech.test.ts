import { once } from 'node:events';
import { readdir } from 'node:fs/promises';
import { createServer, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { PublicCall, PublicCallEvent } from '../../actors/call-view.ts';
import { walletOf } from '../../storage/ledger.ts';
import { listUsage } from '../../storage/queries/usage.ts';
import { untilTruthy } from '../eventually.ts';
import {
  API_KEY,
  callOf,
  clean,
  cleanUp,
  dataFolder,
  fund,
  heldOf,
  type Ready,
  startReady,
  townFor,
  withDatabase,
} from './ready-server.ts';

const ENV = { TTS_ENGINE: 'espeak-ng', LOG_LEVEL: 'trace' };
/** Minutes of speech, more than the buffers of a connection. */
const LONG_TEXT = 'Bring the seven brass lanterns to the harbour. '.repeat(100);
const CHARACTER_NANO = 15_000n;

afterEach(cleanUp);

describe('kill -9 during a synthesis', () => {
  it('leaves no file; the next start refunds undelivered characters and notifies webhooks, once', async () => {
    const dataDir = await dataFolder();
    const first = await startReady(dataDir, ENV);
    await withDatabase(dataDir, (sql) => fund(sql, first.workspaceId));
    const funded = await balanceOf(first);
    const receiver = await startEndpoint();
    await first.api.post('/webhooks', { url: receiver.url, events: ['tts.completed', 'tts.failed'] });
    // Delivered completely, so it stays charged.
    for await (const _ of first.api.lines('/tts-stream', { text: 'All of it.' }));
    await untilTruthy(() => receiver.events.length === 1, 'the webhook hears of the first text');
    const before = await balanceOf(first);
    expect(before).toBe(funded - 10n * CHARACTER_NANO);

    await listenToTheBeginning(first, { text: LONG_TEXT });
    const characters = BigInt(LONG_TEXT.length);
    expect(await balanceOf(first)).toBe(before - characters * CHARACTER_NANO);
    expect(await readdir(join(dataDir, 'tmp'))).toHaveLength(1);
    await untilTruthy(async () => (await deliveredOf(first)) > 0n, 'the server notes what the listener received');
    first.server.child.kill('SIGKILL');
    await first.server.exited;

    const second = await startReady(dataDir, ENV);
    const delivered = await deliveredOf(second);
    expect(delivered).toBeLessThan(characters);
    expect(await balanceOf(second)).toBe(before - delivered * CHARACTER_NANO);
    expect(await readdir(join(dataDir, 'tmp'))).toEqual([]);
    const kinds = await withDatabase(
      dataDir,
      (sql) => sql<{ kind: string }[]>`select kind from entries order by position`,
    );
    expect(kinds.map(({ kind }) => kind)).toEqual(['top_up', 'charge', 'charge', 'refund']);
    for await (const _ of second.api.lines('/tts-stream', { text: 'And on.' }));
    await untilTruthy(
      () => receiver.events.some(({ data }) => data.text === 'And on.'),
      'the webhook hears of the last text',
    );
    await untilTruthy(() => new Set(receiver.ids).size === 3, 'the webhook hears of the lost text');
    const failed = receiver.events.filter(({ event }) => event === 'tts.failed');
    expect(failed.map(({ data }) => data.error)).toEqual(['INTERRUPTED']);
    for (const { server } of [first, second]) expect(server.output()).not.toContain('lanterns');
  });
});

describe('kill -9 during an announcement', () => {
  it('charges the started announcement once, with the settlement of the call', async () => {
    const dataDir = await dataFolder();
    const first = await startReady(dataDir, ENV);
    const peers = await townFor(first);
    const announce = 'Call from the harbour. Bring all seven brass lanterns, and count them twice before you leave.';
    // Warms the cache, so that the announcement starts at once on a busy machine.
    for await (const _ of first.api.lines('/tts-stream', { text: announce }));
    const { call } = await first.api.post<{ call: PublicCall }>('/dialer/click2call', {
      agent_number: peers.agent.user,
      customer_number: peers.customer.user,
      announce,
      whisper: 'She called twice today.',
    });
    for await (const { event } of first.api.events(call.call_id)) if (event.startsWith('announcement.')) break;
    first.server.child.kill('SIGKILL');
    await first.server.exited;

    const second = await startReady(dataDir, ENV);
    const cost = Number(BigInt(announce.length) * CHARACTER_NANO) / 1e9;
    expect(await callOf(second, call.call_id)).toMatchObject({
      state: 'failed',
      cost_usd: null,
      speech_cost_usd: cost,
      billing_status: 'billed',
    });
    expect(await heldOf(second)).toBe(0n);
    const path = `/dialer/click2call/${call.call_id}/events`;
    const { events } = await second.api.get<{ events: PublicCallEvent[] }>(path);
    const names = events.map(({ event }) => event);
    expect(names.filter((event) => event === 'announcement.started')).toHaveLength(1);
    expect(names).not.toContain('customer.dialing');
    const { rows } = await withDatabase(dataDir, (sql) =>
      listUsage(sql, { workspaceId: second.workspaceId, service: 'tts' }, { page: 1, limit: 10 }),
    );
    const charged = rows.filter(({ resourceId }) => resourceId === call.call_id);
    expect(charged.map(({ operation, quantity }) => [operation, Number(quantity)])).toEqual([
      ['announce', announce.length],
    ]);
    for (const { server } of [first, second]) expect(server.output()).not.toContain('lanterns');
  });
});

/** Resolves with the response at its first audio, and reads no further. */
async function listenToTheBeginning({ url }: Ready, body: object): Promise<void> {
  const headers = { authorization: `Bearer ${API_KEY}`, 'content-type': 'application/json' };
  const asking = request(`${url}/tts-stream`, { method: 'POST', headers });
  asking.on('error', () => undefined).end(JSON.stringify(body));
  const [answer] = (await once(asking, 'response')) as [IncomingMessage];
  answer.on('error', () => undefined);
  await once(answer, 'readable');
}

async function balanceOf({ dataDir, workspaceId }: Ready): Promise<bigint> {
  return await withDatabase(dataDir, async (sql) => (await walletOf(sql, workspaceId)).availableNano);
}

/** Delivered characters of the longest text in the database. */
async function deliveredOf({ dataDir }: Ready): Promise<bigint> {
  const [row] = await withDatabase(
    dataDir,
    (sql) => sql<{ delivered: bigint }[]>`
      select delivered_characters::bigint as delivered from tts_streams order by characters desc limit 1`,
  );
  return row!.delivered;
}

interface ToldEvent {
  event: string;
  data: { id: string; text?: string; error?: string };
}

async function startEndpoint() {
  const events: ToldEvent[] = [];
  const ids: string[] = [];
  const server = createServer(async (asked, answer) => {
    const chunks: Buffer[] = [];
    for await (const chunk of asked) chunks.push(chunk as Buffer);
    ids.push(String(asked.headers['webhook-id']));
    events.push(JSON.parse(Buffer.concat(chunks).toString()) as ToldEvent);
    answer.writeHead(204).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  clean.push(() => new Promise<void>((resolve) => void server.close(() => resolve()).closeAllConnections()));
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/told`, events, ids };
}
