import { once } from 'node:events';
import { readdir, writeFile } from 'node:fs/promises';
import { type AddressInfo, createConnection, createServer as createTcpServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { PublicCall, PublicCallEvent, PublicTranscript } from '../../actors/call-view.ts';
import { apiClient } from '../../bin/cli/api-client.ts';
import { startCallbackReceiver } from '../../bin/demo/callback-receiver.ts';
import { conversationOf } from '../../bin/demo/conversation.ts';
import { parseWav } from '../../media/wav.ts';
import { startEmbeddedSipServer } from '../../sip/embedded/embedded-sip-server.ts';
import { listUsage } from '../../storage/queries/usage.ts';
import { selfSignedCertificate } from '../callbacks/certificate.ts';
import { untilTruthy } from '../eventually.ts';
import { openGate } from '../storage/gate.ts';
import { createTestDatabase } from '../storage/test-database.ts';
import { toneLevelDbov } from '../tone-level.ts';
import {
  callOf,
  clean,
  cleanUp,
  dataFolder,
  environment,
  heldOf,
  startReady,
  townFor,
  withDatabase,
} from './ready-server.ts';
import { postgresPid, type ServerProcess, startServerProcess } from './server-process.ts';

const SECRET = 'the-secret-of-the-process-test';

afterEach(cleanUp);

describe('npm start', () => {
  it('prints every setting with --help and starts nothing', async () => {
    const server = startServerProcess({}, ['--help']);
    expect(await server.exited).toBe(0);
    for (const name of ['TANDEM_DATA_DIR', 'DATABASE_URL', 'RTP_PORT_MIN', 'CALLBACK_ALLOW_CIDRS']) {
      expect(server.output()).toContain(name);
    }
  });

  it('exits with one line that names a malformed setting', async () => {
    const server = startServerProcess({ RTP_PORT_MIN: '19999', TANDEM_DATA_DIR: await dataFolder() });
    expect(await server.exited).toBe(1);
    expect(server.output().trim().split('\n')).toHaveLength(1);
    expect(server.output()).toContain('RTP_PORT_MIN');
  });

  it('ends at a second signal while it waits for its database', async () => {
    const silent = createTcpServer().listen(0, '127.0.0.1');
    await once(silent, 'listening');
    clean.push(() => void silent.close());
    const { port } = silent.address() as AddressInfo;
    const url = `postgres://127.0.0.1:${port}/tandem`;
    const server = startServerProcess(environment(await dataFolder(), { DATABASE_URL: url }));
    const [connection] = (await once(silent, 'connection')) as [Socket];
    clean.push(() => void connection.destroy());
    for (const signal of ['SIGINT', 'SIGTERM'] as const) server.child.kill(signal);
    expect(await server.exited).toBe(1);
    const printed = server
      .output()
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('{'));
    expect(printed).toEqual(['Stopped before the start was complete.']);
  });

  it('ends with an error that names the unclosed part while its database answers nothing', async () => {
    const database = await createTestDatabase({ max: 1 });
    clean.push(() => database.drop());
    const gate = await openGate(database.url);
    clean.push(() => gate.shut());
    const { server } = await startReady(await dataFolder({ databaseUrl: gate.url }));
    await untilTruthy(() => server.output().includes('Console: '), 'the address of the console is printed');
    gate.freeze();
    for (const signal of ['SIGTERM', 'SIGINT'] as const) server.child.kill(signal);
    const { part } = await server.logged('stops although a part has not closed in time');
    expect(['http', 'actors', 'storage']).toContain(part);
    expect(await server.exited).toBe(1);
  });

  it('exits with one line when its HTTP port is taken', async () => {
    const taken = createTcpServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    clean.push(() => void taken.close());
    const { port } = taken.address() as AddressInfo;
    const server = startServerProcess(environment(await dataFolder(), { PORT: String(port) }));
    expect(await server.exited).toBe(1);
    const lines = server
      .output()
      .trim()
      .split('\n')
      .filter((line) => !line.startsWith('{'));
    expect(lines).toHaveLength(1);
    expect(lines[0]).toContain('PORT');
  });

  it('exits with one line that names the setting when a SIP port is taken or drachtio rejects the secret', async () => {
    const folder = await dataFolder();
    const files = { SIP_TLS_CERT: join(folder, 'cert.pem'), SIP_TLS_KEY: join(folder, 'key.pem') };
    const { cert, key } = selfSignedCertificate({ dns: ['sip.example.com'] });
    await Promise.all([writeFile(files.SIP_TLS_CERT, cert), writeFile(files.SIP_TLS_KEY, key)]);
    const taken = createTcpServer().listen(0, '127.0.0.1');
    await once(taken, 'listening');
    clean.push(() => void taken.close());
    const { port } = taken.address() as AddressInfo;
    const tls = { ...files, SIP_TLS_PORT: String(port) };
    const sip = await startEmbeddedSipServer({
      sipHost: '127.0.0.1',
      sipPort: 0,
      transports: ['udp'],
      secret: 'right',
    });
    clean.push(() => sip.close());
    const drachtio = { DRACHTIO_HOST: '127.0.0.1', DRACHTIO_PORT: String(sip.controlPort), DRACHTIO_SECRET: 'wrong' };
    for (const [env, setting] of [
      [tls, 'SIP_TLS_PORT'],
      [drachtio, 'DRACHTIO_SECRET'],
    ] as const) {
      const server = startServerProcess(environment(await dataFolder(), env));
      expect(await server.exited).toBe(1);
      const printed = server.output().trim().split('\n');
      const lines = printed.filter((line) => !line.startsWith('{'));
      expect(lines, lines.join('\n')).toEqual([expect.stringContaining(`${setting} to`)]);
    }
  });

  it.each([
    ['a data folder that it cannot write', {}, /Set TANDEM_DATA_DIR/],
    // RFC 5737: no machine has this address.
    ['an address of another machine', { HOST: '192.0.2.1' }, /set HOST/],
    ['a certificate that it cannot read', { SIP_TLS_CERT: 'cert.pem', SIP_TLS_KEY: 'key.pem' }, /SIP_TLS_CERT/],
  ])('exits with one line that names the setting of %s', async (about, env, line) => {
    const dataDir = await dataFolder();
    if (about.includes('folder')) await writeFile(join(dataDir, 'recordings'), '');
    const server = startServerProcess(environment(dataDir, env));
    expect(await server.exited).toBe(1);
    const printed = server.output().trim().split('\n');
    expect(printed.filter((each) => !each.startsWith('{'))).toEqual([expect.stringMatching(line)]);
  });

  it('exits with one line when another server uses its data folder, even with another database', async () => {
    const dataDir = await dataFolder();
    await startReady(dataDir);
    await using database = await createTestDatabase();
    const second = startServerProcess(environment(dataDir, { DATABASE_URL: database.url }));
    expect(await second.exited).toBe(1);
    expect(second.output()).toMatch(/^The data folder .* is in use by the running process \d+\.\n$/);
  });

  it('creates the first key once, prints a login link without a password, keeps an empty wallet, serves health, and stops cleanly on SIGTERM and SIGINT', async () => {
    const dataDir = await dataFolder({ embedsPostgres: true });
    const server = startServerProcess({ ...environment(dataDir), TANDEM_API_KEY: '' });
    clean.push(() => server.child.kill('SIGKILL'));
    const { url, workspaceId } = (await server.logged('Tandem is ready')) as { url: string; workspaceId: string };
    await untilTruthy(() => /sk_\S{20,}/.test(server.output()), 'a key is printed');
    const apiKey = /sk_\S+/.exec(server.output())?.[0] ?? '';
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    expect(await apiClient({ url, apiKey }).get('/dialer/pool')).toMatchObject({ provisioned: false });
    await untilTruthy(() => /link_\S{20,}/.test(server.output()), 'a login link is printed');
    const [line = '', token = ''] = /^.*(link_\S+)$/m.exec(server.output()) ?? [];
    expect(line).toBe(`Log in once, within a day: ${url}/console/login?token=${token}`);
    expect(await apiClient({ url, apiKey }).post('/auth/login-link', { token })).toMatchObject({ user: { id: 1 } });
    expect(server.output().split(token)).toHaveLength(2);
    await stopsCleanly({ server, dataDir, url }, 'SIGTERM');
    const again = await startReady(dataDir, { TANDEM_API_KEY: '', TANDEM_OWNER_PASSWORD: 'green staple under' });
    expect(again.workspaceId).toBe(workspaceId);
    await untilTruthy(() => again.server.output().includes(`Console: ${again.url}/`), 'the console is named');
    expect(again.server.output()).not.toMatch(/sk_|link_/);
    await stopsCleanly({ ...again, dataDir }, 'SIGINT');
  });
});

/** Stops a server, which must leave no Postgres behind. */
async function stopsCleanly(
  { server, dataDir, url }: { server: ServerProcess; dataDir: string; url: string },
  signal: NodeJS.Signals,
): Promise<void> {
  expect(await postgresPid(dataDir)).not.toBeNull();
  server.child.kill(signal);
  expect(await server.exited).toBe(0);
  expect(await postgresPid(dataDir)).toBeNull();
  expect(await isListening(url)).toBe(false);
}

describe('kill -9 during a call', () => {
  it('leaves nothing behind; the next start settles the call, keeps its recording and sends its callback', async () => {
    const dataDir = await dataFolder({ embedsPostgres: true });
    const first = await startReady(dataDir);
    const receiver = await startCallbackReceiver(SECRET);
    clean.push(() => receiver.stop());
    const peers = await townFor(first);
    const { call } = await first.api.post<{ call: PublicCall }>('/dialer/click2call', {
      agent_number: peers.agent.user,
      customer_number: peers.customer.user,
      record: true,
      callback_url: receiver.url,
      callback_secret: SECRET,
    });
    await peers.customer.untilReceived(({ packets }) => packets > 250);
    const postgres = await postgresPid(dataDir);
    expect(postgres).not.toBeNull();
    first.server.child.kill('SIGKILL');
    await first.server.exited;

    await untilTruthy(async () => (await postgresPid(dataDir)) === null, 'the embedded Postgres ends with its owner');
    expect(await isListening(first.url)).toBe(false);
    const recordings = await readdir(join(dataDir, 'recordings'));
    expect(recordings).toHaveLength(1);

    const second = await startReady(dataDir);
    await Promise.all([peers.agent.until('bye'), peers.customer.until('bye')]);
    const callback = await receiver.callbackOf(call.call_id);
    expect(callback).toMatchObject({ verified: { ok: true }, body: { event: 'call.completed' } });
    await untilTruthy(async () => (await callOf(second, call.call_id)).recording_available, 'the recording is stored');
    const settled = await callOf(second, call.call_id);
    expect(settled).toMatchObject({
      state: 'completed',
      call_done: true,
      hangup_cause: 'NORMAL_TEMPORARY_FAILURE',
      error: 'server_lost',
      billing_status: 'billed',
    });
    expect(settled.talk_seconds).toBeGreaterThan(0);
    expect(settled.talk_seconds).toBeLessThan(10);
    const { recording } = await second.api.post<{ recording: { playback_url: string } }>(
      `/dialer/click2call/${call.call_id}/recording`,
    );
    const wav = parseWav(Buffer.from(await (await fetch(recording.playback_url)).arrayBuffer()));
    expect(wav.durationMs).toBeGreaterThan(1_000);
    expect(toneLevelDbov(wav.samples[0] as Int16Array, 440)).toBeGreaterThan(-20);
    expect(toneLevelDbov(wav.samples[1] as Int16Array, 660)).toBeGreaterThan(-20);
    expect(await heldOf(second)).toBe(0n);
    const states = await second.api.get<{ events: { event: string }[] }>(`/dialer/click2call/${call.call_id}/events`);
    expect(states.events.map(({ event }) => event).slice(-2)).toEqual(['call.unknown', 'call.completed']);
  });

  it('marks the transcript as interrupted, and settles the call once', async () => {
    const dataDir = await dataFolder();
    // The engine that `npm ci` installs everywhere.
    const first = await startReady(dataDir, { STT_ENGINE: 'pocketsphinx', LOG_LEVEL: 'trace' });
    const receiver = await startCallbackReceiver(SECRET);
    clean.push(() => receiver.stop());
    const conversation = conversationOf(2);
    const speak = (leg: 'agent' | 'customer') => ({
      audio: { kind: 'samples' as const, samples: conversation.trackOf(leg, { leadMs: 0 }) },
    });
    const peers = await townFor(first, { agent: speak('agent'), customer: speak('customer') });
    const { call } = await first.api.post<{ call: PublicCall }>('/dialer/click2call', {
      agent_number: peers.agent.user,
      customer_number: peers.customer.user,
      transcribe: true,
      callback_url: receiver.url,
      callback_secret: SECRET,
    });
    const path = `/dialer/click2call/${call.call_id}`;
    for await (const { event } of first.api.events(call.call_id)) if (event === 'transcript.final') break;
    const before = await first.api.get<PublicTranscript>(`${path}/transcript`);
    expect(before.status).toBe('in_progress');
    expect(before.segments.length).toBeGreaterThan(0);
    first.server.child.kill('SIGKILL');
    await first.server.exited;

    const second = await startReady(dataDir);
    expect(await receiver.callbackOf(call.call_id)).toMatchObject({
      verified: { ok: true },
      body: { event: 'call.completed' },
    });
    const settled = await callOf(second, call.call_id);
    expect(settled).toMatchObject({ state: 'completed', error: 'server_lost', billing_status: 'billed' });
    const after = await second.api.get<PublicTranscript>(`${path}/transcript`);
    expect(after).toMatchObject({ status: 'failed', error: 'INTERRUPTED' });
    expect(after.segments.slice(0, before.segments.length)).toEqual(before.segments);
    const { events } = await second.api.get<{ events: PublicCallEvent[] }>(`${path}/events`);
    expect(events.filter(({ event }) => event === 'call.completed')).toHaveLength(1);
    expect(events.map(({ sequence }) => sequence)).toEqual(events.map((_, index) => index + 1));
    const usage = await withDatabase(dataDir, (sql) =>
      listUsage(sql, { workspaceId: first.workspaceId }, { page: 1, limit: 50 }),
    );
    const chargedFor = (operation: string) => usage.rows.filter((row) => row.operation === operation).length;
    expect([chargedFor('click2call'), chargedFor('call_transcript')]).toEqual([1, after.segments.length]);
    expect(await heldOf(second)).toBe(0n);
    for (const secret of [before.segments[0]!.text, peers.agent.user, peers.customer.user]) {
      expect(first.server.output() + second.server.output()).not.toContain(secret);
    }
  });

  it('costs nothing before the bridge, and the agent can be called again', async () => {
    const dataDir = await dataFolder();
    const first = await startReady(dataDir);
    const peers = await townFor(first, { agent: { answer: 'manual' } });
    const { call } = await first.api.post<{ call: PublicCall }>('/dialer/click2call', {
      agent_number: peers.agent.user,
      customer_number: peers.customer.user,
    });
    await peers.agent.until('ringing');
    first.server.child.kill('SIGKILL');
    await first.server.exited;
    const second = await startReady(dataDir);
    expect(await callOf(second, call.call_id)).toMatchObject({
      state: 'failed',
      terminal_event: 'call.temporaryfailed',
      cost_usd: null,
      billing_status: null,
    });
    expect(await heldOf(second)).toBe(0n);
    const again = await second.api.post<{ placed: boolean }>('/dialer/click2call', {
      agent_number: peers.agent.user,
      customer_number: peers.customer.user,
    });
    expect(again.placed).toBe(true);
  });
});

async function isListening(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url);
  return await new Promise((resolve) => {
    const socket = createConnection({ host: hostname, port: Number(port) });
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}
