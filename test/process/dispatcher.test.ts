import { execFile } from 'node:child_process';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../eventually.ts';
import { composition } from '../packaging/composition.ts';
import { type Dispatcher, startDispatcher } from '../peers/dispatcher.ts';
import { peerAvailable } from '../peers/programs.ts';
import { callWithSipp } from '../peers/sipp.ts';
import { startLoopbackCarrier } from '../softphone/loopback-carrier.ts';
import { type Softphone, startSoftphone } from '../softphone/softphone.ts';
import { createTestDatabase, type TestDatabase } from '../storage/test-database.ts';
import { createTestRedis, redisIsReachable, type TestRedis } from '../storage/test-redis.ts';
import { API_KEY, clean, cleanUp, fund, type Ready, startReady } from './ready-server.ts';
import { type SipServerProcess, startSipServer } from './sip-servers.ts';

/**
 * The processes of the profile `scale` with the settings of docker-compose.yml except addresses, and embedded SIP
 * servers in place of drachtio-server.
 */

const DID = '+911140000001';
/** Differs from the dispatcher's address, so the nodes must learn the source of a call from it. */
const CARRIER_HOST = '127.0.0.9';
const RTP_PORTS = [
  { RTP_PORT_MIN: '38000', RTP_PORT_MAX: '38199' },
  { RTP_PORT_MIN: '38200', RTP_PORT_MAX: '38399' },
] as const;
const { services } = composition({ COMPOSE_PROFILES: 'scale', SIP_PORT: '5062' });
const SERVICES = [services.tandem!, services['tandem-2']!] as const;

const canRun = peerAvailable('kamailio') && peerAvailable('sipp') && (await redisIsReachable());

describe.skipIf(!canRun)('two nodes behind kamailio', () => {
  let database: TestDatabase;
  let redis: TestRedis;
  let sipServers: SipServerProcess[];
  let nodes: ScaledNode[];
  let folder: string;
  let dispatcher: Dispatcher;
  let agent: Softphone;

  beforeAll(async () => {
    database = await createTestDatabase();
    clean.push(() => database.drop());
    redis = await createTestRedis();
    clean.push(() => redis.drop());
    folder = await mkdtemp(join(tmpdir(), 'tandem-scale-'));
    clean.push(() => rm(folder, { recursive: true, force: true }));
    sipServers = await Promise.all(
      SERVICES.map(({ environment = {} }) => startSipServer({ secret: environment.DRACHTIO_SECRET ?? '' })),
    );
    clean.push(() => Promise.all(sipServers.map((server) => server.kill())));
    nodes = await Promise.all([0, 1].map((index) => startNode(index)));
    dispatcher = await startDispatcher(sipServers.map(({ sipPort }) => `127.0.0.1:${sipPort}`));
    clean.push(() => dispatcher.stop());

    agent = await startSoftphone({ name: 'agent', user: '+919811111111' });
    const carrier = await startLoopbackCarrier({
      host: CARRIER_HOST,
      routes: new Map([[agent.user, agent.address]]),
    });
    clean.push(() => Promise.all([agent.stop(), carrier.stop()]));
    const { api, workspaceId } = nodes[0]!;
    await api.post('/dialer/trunks', { name: 'Carrier', sip_uri: carrier.sipUri, channels: 10, numbers: [DID] });
    await api.post('/dialer/numbers', { e164: DID });
    const rule = { action: 'forward', endpoint: { type: 'phone', number: agent.user } };
    await api.put(`/dialer/numbers/${encodeURIComponent(DID)}/inbound`, rule);
    await fund(database.sql, workspaceId);
    await untilFlags(['AP', 'AP']);
  });
  afterAll(cleanUp);

  it('receive inbound calls in turn, with the carrier named by the dispatcher', async () => {
    expect(new Set(await ownersOfCalls(2)).size).toBe(2);
  });

  it('hang up on the carrier through the dispatcher', async () => {
    const called = callWithSipp({
      ...{ scenario: 'calls-and-is-hung-up', target: dispatcher.address, number: DID, host: CARRIER_HOST },
    });
    await ownerOfBridgedCall();
    agent.hangup();
    await called;
  });

  it('receive no requests that neither start a call nor belong to their dialogs', async () => {
    expect(await statusOf({ method: 'OPTIONS' })).toBe(200);
    expect(await statusOf({ method: 'MESSAGE' })).toBe(405);
    expect(await statusOf({ method: 'BYE', inDialog: true })).toBe(481);
    const route = (server: string) =>
      `Route: <sip:127.0.0.1:${dispatcher.address.port};lr;server=${Buffer.from(server).toString('hex')}>\r\n`;
    expect(await statusOf({ method: 'BYE', inDialog: true, headers: route('sip:127.0.0.1:9') })).toBe(403);
  });

  it('keep their objects in one folder', async () => {
    const [one, two] = nodes.map(({ dataDir }) => join(dataDir, 'objects')) as [string, string];
    await writeFile(join(one, 'object'), 'of the first');
    expect(await readFile(join(two, 'object'), 'utf8')).toBe('of the first');
  });

  it('leave calls to each other while a SIP server is frozen, and share them again afterwards', async () => {
    sipServers[0]!.child.kill('SIGSTOP');
    await untilFlags(['IP', 'AP']);
    const [owner, ...owners] = await ownersOfCalls(2);
    expect(owners).toEqual([owner]);
    sipServers[0]!.child.kill('SIGCONT');
    await untilFlags(['AP', 'AP']);
    expect(new Set(await ownersOfCalls(2)).size).toBe(2);
  });

  it('receive the calls of a draining node, which finishes its own call and restarts', async () => {
    const called = callWithSipp({
      ...{ scenario: 'calls-and-is-hung-up', target: dispatcher.address, number: DID, host: CARRIER_HOST },
    });
    const talking = agent.calls.length;
    const owner = await ownerOfBridgedCall();
    const draining = nodes.find(({ node }) => node === owner)!;
    draining.server.child.kill('SIGTERM');
    await draining.server.logged('draining: live calls may finish, a second signal ends them');
    expect(await ownersOfCalls(2)).not.toContain(owner);
    agent.calls[talking]!.hangup();
    await called;
    expect(await draining.server.exited).toBe(0);
    const index = nodes.indexOf(draining);
    await untilFlags(index === 0 ? ['IP', 'AP'] : ['AP', 'IP']);
    nodes[index] = await startNode(index);
    await untilFlags(['AP', 'AP']);
    expect(new Set(await ownersOfCalls(2)).size).toBe(2);
  });

  it('leave a call to each other when a SIP server was just killed', async () => {
    sipServers[0]!.child.kill('SIGKILL');
    const owners = await ownersOfCalls(2);
    expect(new Set(owners).size).toBe(1);
    await untilFlags(['IP', 'AP']);
  });

  async function startNode(index: number): Promise<ScaledNode> {
    const { environment = {}, command } = SERVICES[index]!;
    const { TANDEM_DATA_DIR = '' } = environment;
    const dataDir = TANDEM_DATA_DIR.replace(/^\/data/, folder);
    // The commands of the service before it starts the server.
    const script = command?.[2]?.replace('exec node main.ts', '') ?? '';
    await promisify(execFile)('sh', ['-c', script], { env: { ...process.env, TANDEM_DATA_DIR: dataDir } });
    const ready = await startReady(dataDir, {
      ...environment,
      ...{ HOST: '127.0.0.1', PORT: '0', TANDEM_DATA_DIR: dataDir, MODELS_DIR: join(folder, 'models') },
      ...{ TANDEM_API_KEY: API_KEY, DATABASE_URL: database.url, REDIS_URL: redis.url },
      ...{ DRACHTIO_HOST: '127.0.0.1', DRACHTIO_PORT: String(sipServers[index]!.controlPort) },
      ...{ SIP_TRUSTED_PROXIES: '127.0.0.1', RTP_HOST: '127.0.0.1', WEBRTC_PORT: '0', ...RTP_PORTS[index] },
    });
    return { ...ready, node: (await readFile(join(dataDir, 'node-id'), 'utf8')).trim() };
  }

  async function ownerOfBridgedCall(): Promise<string> {
    return await eventually(async () => {
      const rows = await database.sql<{ ownerNode: string }[]>`
        select owner_node as "ownerNode" from calls where state = 'bridged'`;
      expect(rows).toHaveLength(1);
      return rows[0]!.ownerNode;
    });
  }

  async function ownersOfCalls(count: number): Promise<string[]> {
    const before = await database.sql`select 1 from calls`;
    for (let call = 0; call < count; call += 1) {
      await callWithSipp({
        ...{ scenario: 'calls-and-hangs-up', target: dispatcher.address, number: DID, host: CARRIER_HOST },
      });
    }
    return await eventually(async () => {
      const rows = await database.sql<{ ownerNode: string; state: string }[]>`
        select owner_node as "ownerNode", state from calls order by created_at offset ${before.length}`;
      expect(rows.map(({ state }) => state)).toEqual(Array.from({ length: count }, () => 'completed'));
      return rows.map(({ ownerNode }) => ownerNode);
    });
  }

  /** `AP`: active and probed; `IP`: inactive and probed. */
  async function untilFlags(flags: string[]): Promise<void> {
    await eventually(async () => {
      const listed = await dispatcher.sipServers();
      expect(sipServers.map(({ sipPort }) => listed[`127.0.0.1:${sipPort}`])).toEqual(flags);
    });
  }

  async function statusOf({ method, inDialog = false, headers = '' }: RequestParts): Promise<number> {
    const socket = createSocket('udp4');
    try {
      socket.bind(0, CARRIER_HOST);
      await once(socket, 'listening');
      const { host, port } = dispatcher.address;
      const id = Math.random().toString(36).slice(2);
      const request = [
        `${method} sip:${DID}@${host}:${port} SIP/2.0\r\n`,
        `Via: SIP/2.0/UDP ${CARRIER_HOST}:${socket.address().port};branch=z9hG4bK${id}\r\n`,
        `${headers}Max-Forwards: 70\r\nFrom: <sip:a@${CARRIER_HOST}>;tag=${id}\r\n`,
        `To: <sip:${DID}@${host}>${inDialog ? ';tag=x' : ''}\r\n`,
        `Call-ID: ${id}\r\nCSeq: 1 ${method}\r\nContent-Length: 0\r\n\r\n`,
      ];
      socket.send(request.join(''), port, host);
      const [answer] = (await once(socket, 'message')) as [Buffer];
      return Number(/^SIP\/2\.0 (\d{3})/.exec(answer.toString('latin1'))?.[1]);
    } finally {
      socket.close();
    }
  }
});

interface ScaledNode extends Ready {
  node: string;
}

interface RequestParts {
  method: string;
  inDialog?: boolean;
  /** With line ends. */
  headers?: string;
}
