import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PublicCall } from '../../actors/call-view.ts';
import type { ApiError } from '../../bin/cli/api-client.ts';
import { startCallbackReceiver } from '../../bin/demo/callback-receiver.ts';
import { parseWav } from '../../media/wav.ts';
import { eventually } from '../eventually.ts';
import { isDeep } from '../properties.ts';
import { startLoopbackCarrier } from '../softphone/loopback-carrier.ts';
import { type Softphone, startSoftphone } from '../softphone/softphone.ts';
import { requireSoundBooks } from '../storage/sound-books.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import { createTestRedis, redisIsReachable, type TestRedis } from '../storage/test-redis.ts';
import { clean, cleanUp, fund, placingServers, type Ready, startReady } from './ready-server.ts';
import { startSipServer } from './sip-servers.ts';

const SECRET = 'the-secret-of-the-takeover-test';
/** Fifty calls in all with `npm run test:deep`. */
const CALLS_PER_STATE = isDeep ? 5 : 2;
const LONGEST_RING_S = 60;
/** On a machine with six times as many running processes as cores. */
const LONGEST_SETTLEMENT_MS = 240_000;
const LONGEST_START_MS = 600_000;
const RTP_PORTS = { first: 26_000, each: 800 };
/** Encrypted recordings are written in chunks; a kill loses the last one. */
const LOST_WITH_THE_PROCESS_MS = 4_000;

const NUMBERS = {
  agent: '+919811111111',
  slowAgent: '+919811111112',
  customer: '+919822222221',
  slowCustomer: '+919822222222',
  earlyCustomer: '+919822222223',
  leavingCustomer: '+919822222224',
  target: '+919833333331',
  supervisor: '+919833333332',
  guest: '+919833333333',
};
type Name = keyof typeof NUMBERS;
type Command = { path: string; body?: object };
const phoneAt = (name: Name) => ({ endpoint: { type: 'phone', number: NUMBERS[name] } });

/**
 * How a call gets into each state, and the last event before it. Those that end with a timeout come last, because a busy
 * machine takes long to start the other servers.
 */
const STATES: Record<string, { agent?: Name; customer?: Name; command?: Command; reached: string }> = {
  bridged: { reached: 'recording.started' },
  'on hold': { command: { path: 'hold', body: { leg: 'customer' } }, reached: 'call.held' },
  'recording paused': { command: { path: 'recording/pause' }, reached: 'recording.paused' },
  supervised: {
    command: { path: 'supervise', body: { mode: 'listen', ...phoneAt('supervisor') } },
    reached: 'supervision.started',
  },
  'with a further leg': { command: { path: 'legs', body: phoneAt('guest') }, reached: 'leg.joined' },
  ending: { customer: 'leavingCustomer', reached: 'recording.started' },
  'being transferred': { command: { path: 'transfer', body: phoneAt('target') }, reached: 'leg.ringing' },
  'early media': { customer: 'earlyCustomer', reached: 'customer.early_media' },
  'the customer rings': { customer: 'slowCustomer', reached: 'customer.ringing' },
  'the agent rings': { agent: 'slowAgent', reached: 'agent.ringing' },
};

describe.skipIf(!(await redisIsReachable()))('kill -9 of one of three servers with calls in ten states', () => {
  let database: TestDatabase;
  let redis: TestRedis;
  let folder: string;
  let sipPort: number;
  let controlPort: number;
  let lost: Ready;
  let survivor: Ready;
  let phones: Record<Name, Softphone>;
  let receiver: Awaited<ReturnType<typeof startCallbackReceiver>>;
  let killedAtMs = 0;
  const states = new Map<string, string>();

  beforeAll(async () => {
    database = await createTestDatabase();
    clean.push(() => database.drop());
    redis = await createTestRedis();
    clean.push(() => redis.drop());
    folder = await mkdtemp(join(tmpdir(), 'tandem-takeover-'));
    clean.push(() => rm(folder, { recursive: true, force: true }));
    await mkdir(join(folder, 'objects'));
    const sipServer = await startSipServer({ secret: SECRET });
    clean.push(() => sipServer.kill());
    ({ sipPort, controlPort } = sipServer);
    lost = await startNode(0);
    phones = await startPhones();
    const carrier = await startLoopbackCarrier({
      routes: new Map(Object.values(phones).map((phone) => [phone.user, phone.address])),
    });
    receiver = await startCallbackReceiver(SECRET);
    clean.push(() => Promise.all([carrier.stop(), receiver.stop()]));
    const { api, workspaceId } = lost;
    const trunk = { name: 'Loopback', sip_uri: carrier.sipUri, numbers: ['+911140000001'] };
    await api.post('/dialer/trunks', { ...trunk, price_per_minute_usd: 0.6, channels: 500 });
    await api.post('/dialer/numbers', { e164: '+911140000001' });
    await fund(database.sql, workspaceId, 100_000_000_000n);
    for (const [state, how] of Object.entries(STATES)) {
      await Promise.all(Array.from({ length: CALLS_PER_STATE }, () => bring(state, how)));
    }
    [survivor] = await Promise.all([startNode(1), startNode(2)]);
    await eventually(async () => expect(await placingServers(database.sql)).toBe(3));
    await killWhileSomeEnd();
    await eventually(async () => expect(await unsettled()).toEqual([]), LONGEST_SETTLEMENT_MS);
    console.log(`all calls are settled ${((performance.now() - killedAtMs) / 1_000).toFixed(1)} s after the kill`);
  }, LONGEST_START_MS);
  afterAll(cleanUp);

  it('happens with every call in its state on the killed server', async () => {
    expect(states.size).toBe(Object.keys(STATES).length * CALLS_PER_STATE);
    const nodes = await database.sql`select 1 from nodes where settled_at is not null`;
    expect(nodes).toHaveLength(1);
  });

  it('brings each call to one final state with one terminal event and no missing event', async () => {
    const logs = await database.sql<{ callId: string; state: string; error: string | null; events: string[] }[]>`
      select c.call_id, c.state, c.error, array_agg(e.event order by e.sequence) as events
      from calls c join call_events e on e.call_id = c.call_id
      where c.call_id = any(${[...states.keys()]})
      group by c.call_id, c.state, c.error having max(e.sequence) = count(*)`;
    expect(logs).toHaveLength(states.size);
    for (const { callId, state, error, events } of logs) {
      const was = states.get(callId)!;
      const talked = STATES[was]!.reached !== 'agent.ringing' && events.includes('call.bridged');
      const end = talked ? 'call.completed' : 'call.temporaryfailed';
      expect({ was, state, terminal: events.filter(isTerminal), last: events.at(-1) }).toEqual({
        ...{ was, state: talked ? 'completed' : 'failed', terminal: [end], last: end },
      });
      if (was !== 'ending') expect({ was, error }).toEqual({ was, error: 'server_lost' });
    }
  });

  it('charges each call until the killed server last reported, and releases every hold', async () => {
    const talks = await database.sql<{ talkSeconds: number; costNano: bigint; talkedMs: number }[]>`
      select talk_seconds, cost_nano,
        (extract(epoch from (select seen_at from nodes where settled_at is not null) - answer_time) * 1000)::float8
          as talked_ms
      from calls where error = 'server_lost' and answer_time is not null`;
    expect(talks.length).toBeGreaterThanOrEqual(6 * CALLS_PER_STATE);
    for (const { talkSeconds, costNano, talkedMs } of talks) {
      expect(talkSeconds).toBe(Math.max(0, Math.ceil(talkedMs / 1_000)));
      expect(costNano).toBeGreaterThanOrEqual(BigInt(talkSeconds) * 10_000_000n);
    }
    const free = await database.sql`
      select 1 from calls where error = 'server_lost' and answer_time is null and cost_nano > 0`;
    expect(free).toEqual([]);
    await requireSoundBooks(database.sql, lost.workspaceId);
    expect(await database.sql`select 1 from holds where status = 'open'`).toEqual([]);
  });

  it('finishes every recording from the written audio', async () => {
    const rows = await database.sql<{ callId: string; status: string; durationMs: bigint; talkSeconds: number }[]>`
      select r.call_id, r.status, r.duration_ms, c.talk_seconds
      from recordings r join calls c on c.call_id = r.call_id where c.answer_time is not null`;
    expect(rows).toHaveLength(7 * CALLS_PER_STATE);
    for (const { callId, status, durationMs, talkSeconds } of rows) {
      expect({ callId, status }).toEqual({ callId, status: 'uploaded' });
      const path = `/dialer/click2call/${callId}/recording`;
      const { recording } = await survivor.api.post<{ recording: { playback_url: string } }>(path);
      const wav = parseWav(Buffer.from(await (await fetch(recording.playback_url)).arrayBuffer()));
      expect(Math.abs(wav.durationMs - Number(durationMs))).toBeLessThanOrEqual(1);
      expect(wav.durationMs).toBeGreaterThan(talkSeconds * 1_000 - 1_000 - LOST_WITH_THE_PROCESS_MS);
    }
  });

  it('delivers each callback with one id', async () => {
    await eventually(async () => {
      expect(await database.sql`select 1 from deliveries where status <> 'delivered'`).toEqual([]);
    });
    const due = await database.sql<{ callId: string; eventId: string }[]>`select call_id, event_id from deliveries`;
    expect(due).toHaveLength(states.size);
    for (const { callId, eventId } of due) {
      const received = receiver.received.filter(({ body }) => body.data.call.call_id === callId);
      expect(new Set(received.map(({ body }) => body.event_id))).toEqual(new Set([eventId]));
    }
  });

  it('hangs up every phone: BYE when connected, CANCEL when ringing', async () => {
    await eventually(() => {
      const busy = Object.values(phones).flatMap(({ name, calls }) =>
        calls.filter((call) => call.isOpen()).map(({ state }) => `${name} ${state}`),
      );
      expect(busy).toEqual([]);
    });
    for (const name of ['slowAgent', 'slowCustomer', 'earlyCustomer', 'target'] as const) {
      expect({ name, cancelled: phones[name].log.ofType('cancelled').length }).toEqual({
        ...{ name, cancelled: CALLS_PER_STATE },
      });
    }
    for (const name of ['agent', 'customer', 'leavingCustomer', 'supervisor', 'guest'] as const) {
      const byes = phones[name].log.ofType('bye').map(({ by }) => by);
      expect(byes).toEqual(phones[name].calls.map(() => 'peer'));
    }
  });

  it('lets the next call start on a remaining server', async () => {
    const callId = await place({});
    await eventually(async () => expect(await eventsOf(callId)).toContain('call.bridged'));
    await survivor.api.post(`/dialer/click2call/${callId}/hangup`);
    await eventually(async () => expect(await unsettled()).toEqual([]));
  });

  async function startNode(index: number): Promise<Ready> {
    const dataDir = join(folder, `node-${index}`);
    await mkdir(dataDir);
    await symlink(join(folder, 'objects'), join(dataDir, 'objects'));
    const first = RTP_PORTS.first + index * RTP_PORTS.each;
    return await startReady(dataDir, {
      ...{ DATABASE_URL: database.url, REDIS_URL: redis.url, PLACEMENTS_PER_MINUTE: '1000' },
      ...{ DRACHTIO_HOST: '127.0.0.1', DRACHTIO_PORT: String(controlPort), DRACHTIO_SECRET: SECRET },
      ...{ SIP_PORT: String(sipPort), TANDEM_SECRET_KEY: Buffer.alloc(32, 6).toString('base64') },
      ...{ RTP_PORT_MIN: String(first), RTP_PORT_MAX: String(first + RTP_PORTS.each - 1) },
    });
  }

  async function startPhones(): Promise<Record<Name, Softphone>> {
    const manual = { answer: 'manual' } as const;
    const options = { slowAgent: manual, slowCustomer: manual, target: manual };
    const early = { earlyCustomer: { ...manual, earlyMedia: true } };
    const started = await Promise.all(
      Object.entries(NUMBERS).map(async ([name, user]) => {
        const phone = await startSoftphone({ name, user, ...{ ...options, ...early }[name as 'target'] });
        clean.push(() => phone.stop());
        return [name, phone] as const;
      }),
    );
    return Object.fromEntries(started) as Record<Name, Softphone>;
  }

  async function place({ agent = 'agent', customer = 'customer' }: { agent?: Name; customer?: Name }): Promise<string> {
    const server = states.size < Object.keys(STATES).length * CALLS_PER_STATE ? lost : survivor;
    const body = {
      ...{ agent_number: NUMBERS[agent], customer_number: NUMBERS[customer], record: true },
      ...{ agent_ring_timeout: LONGEST_RING_S, customer_ring_timeout: LONGEST_RING_S },
      ...{ callback_url: receiver.url, callback_secret: SECRET },
    };
    const placed = await eventually(async () => {
      try {
        return await server.api.post<{ call: PublicCall }>('/dialer/click2call', body);
      } catch (error) {
        // A busy machine refuses calls while its media workers are late.
        if ((error as ApiError).code === 'no_free_channel') throw error;
        return error as ApiError;
      }
    });
    if (placed instanceof Error) throw placed;
    return placed.call.call_id;
  }

  async function bring(state: string, { command, reached, ...parties }: (typeof STATES)[string]): Promise<void> {
    const callId = await place(parties);
    if (command !== undefined) {
      await eventually(async () => expect(await eventsOf(callId)).toContain('recording.started'));
      await lost.api.post(`/dialer/click2call/${callId}/${command.path}`, command.body);
    }
    await eventually(async () => expect(await eventsOf(callId)).toContain(reached));
    states.set(callId, state);
  }

  /** Kills the server when the first ending call has sent its BYE. */
  async function killWhileSomeEnd(): Promise<void> {
    const ending = [...states].filter(([, state]) => state === 'ending').map(([callId]) => callId);
    for (const callId of ending) void lost.api.post(`/dialer/click2call/${callId}/hangup`).catch(() => null);
    await phones.leavingCustomer.until('bye');
    lost.server.child.kill('SIGKILL');
    killedAtMs = performance.now();
    await lost.server.exited;
  }

  async function eventsOf(callId: string): Promise<string[]> {
    const rows = await database.sql<{ event: string }[]>`select event from call_events where call_id = ${callId}`;
    return rows.map(({ event }) => event);
  }

  async function unsettled(): Promise<string[]> {
    const calls = await database.sql<{ callId: string; state: string }[]>`
      select call_id, state from calls where state not in ('completed', 'failed', 'rejected')`;
    const recordings = await database.sql<{ callId: string; status: string }[]>`
      select call_id, status from recordings where status not in ('uploaded', 'failed', 'deleted')`;
    return [
      ...calls.map(({ callId, state }) => `${states.get(callId)}: ${state}`),
      ...recordings.map(({ callId, status }) => `recording while ${states.get(callId)}: ${status}`),
    ];
  }
});

function isTerminal(event: string): boolean {
  return ['completed', 'not_answered', 'failed', 'temporaryfailed', 'rejected']
    .map((end) => `call.${end}`)
    .includes(event);
}
