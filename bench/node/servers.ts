import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDatabase, type Sql } from '../../storage/database.ts';
import { startEmbeddedPostgres } from '../../storage/embedded/postgres.ts';
import { topUp } from '../../storage/ledger.ts';
import { operatorWorkspaceId } from '../../storage/queries/workspaces.ts';
import { API_KEY, environment } from '../../test/process/ready-server.ts';
import { type ServerProcess, startServerProcess } from '../../test/process/server-process.ts';
import { type Invitation, type InvitationAnswer, startAnsweringPeer } from '../answering-peer.ts';

/** Server processes of `main.ts` on their own Postgres. Everything runs on loopback and ends with the bench. */

export interface Servers extends AsyncDisposable {
  readonly sql: Sql;
  readonly nodes: readonly ServerNode[];
  /** Sets how the only trunk's carrier answers calls; by default all numbers are busy. */
  answerBy(answer: (invitation: Invitation) => InvitationAnswer): void;
}

export interface ServerNode {
  readonly url: string;
  readonly port: number;
  readonly server: ServerProcess;
}

/** Below the system's ephemeral ports, which the phones use. */
const RTP_PORTS = { first: 20_000, count: 12_000 };
const TRUNK_NUMBER = '+911140000001';
const FUNDS_NANO = 1_000_000_000_000n;

/** @param count processes, which share the RTP ports */
export async function startServers(count: number): Promise<Servers> {
  await using opening = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), 'tandem-node-'));
  opening.defer(() => rm(folder, { recursive: true, force: true }));
  const postgres = await startEmbeddedPostgres({ dataDir: join(folder, 'database') });
  opening.defer(() => postgres.stop());
  const database = await openDatabase({ url: postgres.url, max: 4 });
  opening.defer(() => database.close());
  const nodes: ServerNode[] = [];
  for (let index = 0; index < count; index += 1) {
    const portsEach = 4 * Math.floor(RTP_PORTS.count / count / 4);
    const rtpPortMin = RTP_PORTS.first + index * portsEach;
    const dataDir = join(folder, `node-${index}`);
    await mkdir(dataDir);
    const server = startServerProcess({
      ...environment(dataDir),
      DATABASE_URL: postgres.url,
      TANDEM_SECRET_KEY: Buffer.alloc(32, 7).toString('base64'),
      PLACEMENTS_PER_MINUTE: '100000',
      LIMITS_ENTERPRISE_PER_MINUTE: '10000000',
      LIMITS_ENTERPRISE_PER_DAY: '100000000',
      RTP_PORT_MIN: String(rtpPortMin),
      RTP_PORT_MAX: String(rtpPortMin + portsEach - 1),
      WEBRTC_PORT: '0',
    });
    opening.defer(async () => {
      // A second signal cuts the drain short.
      server.child.kill('SIGTERM');
      server.child.kill('SIGINT');
      await server.exited;
    });
    const { url } = (await server.logged('Tandem is ready')) as { url: string };
    nodes.push({ url, port: Number(new URL(url).port), server });
  }
  const { sql } = database;
  const busy = (): InvitationAnswer => ({ status: '486 Busy Here' });
  let answer: (invitation: Invitation) => InvitationAnswer = busy;
  const carrier = await startAnsweringPeer((invitation) => answer(invitation));
  opening.defer(() => carrier.close());
  const { url } = nodes[0]!;
  await post(url, '/dialer/trunks', {
    ...{ name: 'Bench', sip_uri: `sip:127.0.0.1:${carrier.port}`, numbers: [TRUNK_NUMBER], channels: 10_000 },
  });
  await post(url, '/dialer/numbers', { e164: TRUNK_NUMBER });
  const workspaceId = (await operatorWorkspaceId(sql))!;
  await topUp(sql, {
    ...{ workspaceId, amountNano: FUNDS_NANO, paymentType: 'one_time', operationKey: 'bench', description: '' },
  });
  const opened = opening.move();
  return {
    ...{ sql, nodes },
    answerBy(how) {
      answer = how;
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  };
}

export async function post(url: string, path: string, body: object = {}): Promise<Response> {
  return await fetch(url + path, {
    method: 'POST',
    headers: { authorization: AUTHORIZATION, 'content-type': 'application/json' },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(20_000),
  });
}

export const AUTHORIZATION = `Bearer ${API_KEY}`;
