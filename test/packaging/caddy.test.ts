import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import WebSocket, { WebSocketServer } from 'ws';
import { eventually } from '../eventually.ts';
import { freePorts } from '../free-ports.ts';
import { peerAvailable, runPeer } from '../peers/programs.ts';
import { ROOT } from '../root.ts';

/** A fake node behind Caddy. */
interface Node {
  server: Server;
  address: string;
  isReady: boolean;
  /** Readiness checks received. */
  checks: number;
  /** Paths of all other requests. */
  requests: string[];
  /** X-Forwarded-For of the last request. */
  forwardedFor: string | undefined;
  /** Open event streams. */
  streams: ServerResponse[];
}

async function startNode(): Promise<Node> {
  const server = createServer((request, response) => {
    if (request.url === '/readyz') {
      node.checks += 1;
      return void response.writeHead(node.isReady ? 200 : 503).end();
    }
    node.requests.push(request.url ?? '');
    node.forwardedFor = request.headers['x-forwarded-for'] as string | undefined;
    if (request.url !== '/stream') return void response.end('done');
    node.streams.push(response.writeHead(200, { 'content-type': 'text/event-stream' }));
    response.write('data: 1\n\n');
  });
  const sockets = new WebSocketServer({ server });
  sockets.on('connection', (socket) => socket.on('message', (data) => socket.send(`echo ${data.toString()}`)));
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const node: Node = {
    server,
    address: `127.0.0.1:${port}`,
    isReady: true,
    checks: 0,
    requests: [],
    forwardedFor: undefined,
    streams: [],
  };
  return node;
}

describe.skipIf(!peerAvailable('caddy'))('Caddy with the configuration of the profile tls', () => {
  let nodes: [Node, Node];
  let caddy: ReturnType<typeof runPeer>;
  let folder: string;
  let url: string;

  beforeAll(async () => {
    nodes = [await startNode(), await startNode()];
    nodes[0].isReady = false;
    folder = await mkdtemp(join(tmpdir(), 'caddy-'));
    const port = await freePorts(1);
    url = `http://127.0.0.1:${port}`;
    const args = ['run', '--adapter', 'caddyfile', '--config', join(ROOT, 'ops/caddy/Caddyfile')];
    const env = {
      // A plain address instead of a domain needs no certificates.
      TANDEM_DOMAIN: url,
      CADDY_NODES: nodes.map(({ address }) => address).join(' '),
      HOME: folder,
      XDG_DATA_HOME: folder,
      XDG_CONFIG_HOME: folder,
    };
    caddy = runPeer('caddy', { cwd: folder, args, env });
    // Caddy considers an unchecked node ready.
    await eventually(() => expect(nodes[0].checks).toBeGreaterThanOrEqual(1));
    await eventually(async () => {
      nodes[0].requests.length = 0;
      for (let request = 0; request < 4; request += 1) expect((await fetch(url)).status).toBe(200);
      expect(nodes[0].requests).toEqual([]);
    });
  });
  afterAll(async () => {
    await caddy?.stop();
    for (const { server } of nodes ?? []) {
      server.closeAllConnections();
      server.close();
    }
    await rm(folder, { recursive: true, force: true });
  });

  it('forwards each event of an open stream at once', async () => {
    const response = await fetch(`${url}/stream`, { headers: { 'accept-encoding': 'gzip' } });
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    expect((await reader.read()).value).toBe('data: 1\n\n');
    nodes[1].streams[0]!.write('data: 2\n\n');
    expect((await reader.read()).value).toBe('data: 2\n\n');
    await reader.cancel();
  });

  it.each(['/ws/phone', '/v1/speech'])('forwards WebSockets at %s to a ready node', async (path) => {
    const socket = new WebSocket(`${url}${path}`.replace('http', 'ws'));
    await once(socket, 'open');
    socket.send('hello');
    const [answer] = (await once(socket, 'message')) as [Buffer];
    expect(answer.toString()).toBe('echo hello');
    socket.close();
    await once(socket, 'close');
  });

  it('replaces a forged client address', async () => {
    await fetch(url, { headers: { 'x-forwarded-for': '203.0.113.9' } });
    expect(nodes[1].forwardedFor).toBe('127.0.0.1');
  });

  it.each(['/metrics', '/metrics/', '/%6Detrics', '//metrics', '/METRICS?a=b'])('answers 404 to %s', async (path) => {
    const before = nodes[1].requests.length;
    expect((await fetch(`${url}${path}`)).status).toBe(404);
    expect(nodes[1].requests).toHaveLength(before);
  });

  it('sends no request to an unready node', () => {
    expect(nodes[1].requests).not.toEqual([]);
    expect(nodes[0].requests).toEqual([]);
  });
});
