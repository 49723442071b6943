import { spawn } from 'node:child_process';
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import http from 'node:http';
import https from 'node:https';
import type { AddressInfo, Server } from 'node:net';
import net from 'node:net';
import type { TLSSocket } from 'node:tls';
import { afterEach, describe, expect, test } from 'vitest';
import { parseCidrs } from '../../actors/callbacks/public-address.ts';
import type { SafePostOptions } from '../../actors/callbacks/safe-request.ts';
import { safePost } from '../../actors/callbacks/safe-request.ts';
import { selfSignedCertificate } from './certificate.ts';

const opened: Server[] = [];
const sockets = new Set<net.Socket>();
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  sockets.clear();
  await Promise.all(opened.splice(0).map((server) => new Promise((resolve) => server.close(resolve))));
});

async function listen(server: Server): Promise<number> {
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
  });
  server.listen(0, '127.0.0.1');
  opened.push(server);
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

const loopback = parseCidrs(['127.0.0.0/8']);
const post = (options: Partial<SafePostOptions> & { url: string }) =>
  safePost({ body: '{"a":"é"}', headers: {}, allowCidrs: loopback, ...options });

async function received(request: http.IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) text += chunk;
  return text;
}

/** A receiver in another process, which accepts no connection until it continues. */
async function openBusyReceiver() {
  const script = `
    const server = require('node:http').createServer((request, response) => response.end());
    server.listen({ host: '127.0.0.1', port: 0, backlog: 1 }, () => console.log(server.address().port));`;
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(child.stdout, 'data')) as [Buffer];
  const port = Number(String(line));
  child.kill('SIGSTOP');
  // Linux drops further connection requests once its queue is full, and their clients repeat them after a second.
  for (let queued = 0; queued < 2; queued += 1) {
    const socket = net.connect(port, '127.0.0.1');
    sockets.add(socket);
    await once(socket, 'connect');
  }
  return { port, proceed: () => child.kill('SIGCONT'), [Symbol.dispose]: () => void child.kill('SIGKILL') };
}

describe('request to a plain receiver on an allowed address', () => {
  test('sends exact body, length and headers, the name as Host, over a single connection', async () => {
    const requests: { headers: http.IncomingHttpHeaders; body: string; url: string | undefined }[] = [];
    const server = http.createServer(async (request, response) => {
      requests.push({ headers: request.headers, body: await received(request), url: request.url });
      response.writeHead(204).end();
    });
    const port = await listen(server);
    const result = await post({
      url: `http://receiver.example:${port}/hook?x=1#not-sent`,
      headers: { 'content-type': 'application/json', 'webhook-id': 'evt_1' },
      resolve: async () => ['127.0.0.1'],
    });
    expect(result).toEqual({ kind: 'answered', status: 204, retryAfter: null });
    expect(requests).toHaveLength(1);
    expect(requests[0]).toMatchObject({
      url: '/hook?x=1',
      body: '{"a":"é"}',
      headers: {
        host: `receiver.example:${port}`,
        'content-length': '10',
        'content-type': 'application/json',
        'webhook-id': 'evt_1',
        connection: 'close',
      },
    });
  });

  test.each([200, 201, 299, 300, 400, 404, 410, 429, 500, 503])('reports the status %i', async (status) => {
    const port = await listen(
      http.createServer((_request, response) => response.writeHead(status, { 'retry-after': '7' }).end('x')),
    );
    expect(await post({ url: `http://127.0.0.1:${port}/` })).toEqual({ kind: 'answered', status, retryAfter: '7' });
  });

  test.each([301, 302, 303, 307, 308])(
    'reports a redirect %i to an internal address without following it',
    async (status) => {
      let insideHits = 0;
      const inside = await listen(
        http.createServer((_request, response) => {
          insideHits += 1;
          response.end();
        }),
      );
      const port = await listen(
        http.createServer((_request, response) =>
          response.writeHead(status, { location: `http://127.0.0.1:${inside}/` }).end(),
        ),
      );
      expect(await post({ url: `http://127.0.0.1:${port}/` })).toMatchObject({ kind: 'answered', status });
      expect(insideHits).toBe(0);
    },
  );

  test('waits for a receiver that connects slowly, although its other address is unreachable', async () => {
    using receiver = await openBusyReceiver();
    const proceedOnceRequested = (message: unknown) =>
      (message as { socket: net.Socket }).socket.once('connectionAttempt', () => setImmediate(receiver.proceed));
    subscribe('net.client.socket', proceedOnceRequested);
    const result = await post({
      url: `http://receiver.example:${receiver.port}/`,
      allowCidrs: parseCidrs(['127.0.0.0/8', '2001:db8::/32']),
      resolve: async () => ['127.0.0.1', '2001:db8::1'],
    }).finally(() => unsubscribe('net.client.socket', proceedOnceRequested));
    expect(result).toMatchObject({ kind: 'answered', status: 200 });
  });

  test('treats an upgrade like any other response, and closes its socket', async () => {
    const server = net.createServer((socket) => {
      socket.once('data', () => {
        socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n');
      });
    });
    const port = await listen(server);
    const closed = once(server, 'connection').then(([socket]) => once(socket as net.Socket, 'close'));
    const result = await post({ url: `http://127.0.0.1:${port}/`, timeoutMs: 5_000 });
    expect(result).toMatchObject({ kind: 'answered', status: 101 });
    await closed;
  });
});

describe('request to a misbehaving receiver', () => {
  const raw = (answer: (socket: net.Socket) => void) =>
    listen(net.createServer((socket) => void socket.once('data', () => answer(socket))));

  test('times out without a response', async () => {
    const port = await raw(() => {});
    expect(await post({ url: `http://127.0.0.1:${port}/`, timeoutMs: 50 })).toMatchObject({
      kind: 'failed',
      failure: 'timeout',
    });
  });

  test('times out while headers trickle in', async () => {
    const port = await raw((socket) => {
      socket.write('HTTP/1.1 200 OK\r\nx-drip: ');
      const timer = setInterval(() => socket.write('a'), 5);
      socket.on('close', () => clearInterval(timer));
    });
    expect(await post({ url: `http://127.0.0.1:${port}/`, timeoutMs: 100 })).toMatchObject({ failure: 'timeout' });
  });

  test('times out during endless informational responses', async () => {
    const port = await raw((socket) => {
      const timer = setInterval(() => socket.write('HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n'), 5);
      socket.on('close', () => clearInterval(timer));
    });
    expect(await post({ url: `http://127.0.0.1:${port}/`, timeoutMs: 100 })).toMatchObject({ failure: 'timeout' });
  });

  test('succeeds while the body trickles in', async () => {
    const port = await raw((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n');
      const timer = setInterval(() => socket.write('a'), 20);
      socket.on('close', () => clearInterval(timer));
    });
    expect(await post({ url: `http://127.0.0.1:${port}/`, timeoutMs: 1_000 })).toMatchObject({ status: 200 });
  });

  test('stops reading an endless body', async () => {
    const ended = Promise.withResolvers<number>();
    const port = await raw((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n');
      const chunk = `1000\r\n${'a'.repeat(0x1000)}\r\n`;
      const fill = () => {
        while (socket.writable && socket.write(chunk));
      };
      socket.on('drain', fill);
      socket.on('close', () => ended.resolve(socket.bytesWritten));
      fill();
    });
    expect(await post({ url: `http://127.0.0.1:${port}/` })).toMatchObject({ status: 200 });
    expect(await ended.promise).toBeLessThan(64 * 1024 * 1024);
  });

  test('does not decompress a body', async () => {
    const port = await listen(
      http.createServer((_request, response) => {
        response.writeHead(200, { 'content-encoding': 'gzip' }).end('this is not gzip');
      }),
    );
    expect(await post({ url: `http://127.0.0.1:${port}/` })).toMatchObject({ status: 200 });
  });

  test.each([
    ['headers of 64 kB', `HTTP/1.1 200 OK\r\nx: ${'a'.repeat(65_536)}\r\n\r\n`, 'protocol_error'],
    ['a non-HTTP response', 'SSH-2.0-OpenSSH_9.9\r\n', 'protocol_error'],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\na', 'protocol_error'],
    ['half a head', 'HTTP/1.1 200 OK\r\n', 'connection_lost'],
    ['nothing', '', 'connection_lost'],
  ])('fails with %s', async (_name, answer, failure) => {
    const port = await raw((socket) => void socket.end(answer));
    expect(await post({ url: `http://127.0.0.1:${port}/`, timeoutMs: 5_000 })).toMatchObject({
      kind: 'failed',
      failure,
    });
  });

  test('succeeds when the connection resets within the body', async () => {
    const port = await raw((socket) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nab', () => socket.resetAndDestroy());
    });
    const result = await post({ url: `http://127.0.0.1:${port}/`, timeoutMs: 5_000 });
    // The kernel decides which of the two arrives first; neither may hang or throw.
    expect([
      { kind: 'answered', status: 200, retryAfter: null },
      { kind: 'failed', failure: 'connection_lost', detail: 'ECONNRESET' },
    ]).toContainEqual(result);
  });

  test('fails at a closed port', async () => {
    const server = net.createServer();
    const port = await listen(server);
    server.close();
    await once(server, 'close');
    expect(await post({ url: `http://127.0.0.1:${port}/` })).toMatchObject({
      failure: 'connection_failed',
      detail: 'ECONNREFUSED',
    });
  });

  test('can be aborted before and during the request', async () => {
    const gone = AbortSignal.abort();
    expect(await post({ url: 'http://127.0.0.1:1/', signal: gone })).toMatchObject({ failure: 'aborted' });
    const owner = new AbortController();
    const port = await raw(() => owner.abort());
    expect(await post({ url: `http://127.0.0.1:${port}/`, signal: owner.signal })).toMatchObject({
      failure: 'aborted',
    });
  });
});

test('ignores a proxy in the environment', async () => {
  let proxied = 0;
  const proxy = await listen(
    http.createServer((_request, response) => {
      proxied += 1;
      response.end();
    }),
  );
  const port = await listen(http.createServer((_request, response) => response.writeHead(204).end()));
  const importOf = (file: string) => JSON.stringify(new URL(`../../actors/callbacks/${file}`, import.meta.url).href);
  const script = `
    import { parseCidrs } from ${importOf('public-address.ts')};
    import { safePost } from ${importOf('safe-request.ts')};
    const options = { body: '', headers: {}, allowCidrs: parseCidrs(['127.0.0.1']) };
    const result = await safePost({ ...options, url: 'http://127.0.0.1:${port}/' });
    process.stdout.write(String(result.status));`;
  const url = `http://127.0.0.1:${proxy}`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    env: { ...process.env, NODE_USE_ENV_PROXY: '1', HTTP_PROXY: url, http_proxy: url, NO_PROXY: '', no_proxy: '' },
  });
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  await once(child, 'close');
  expect(output).toBe('204');
  expect(proxied).toBe(0);
});

describe('request to a deceptive name', () => {
  test('refuses a name that became private', async () => {
    let hits = 0;
    const port = await listen(
      http.createServer((_request, response) => {
        hits += 1;
        response.end();
      }),
    );
    const result = await post({
      url: `https://rebind.example:${port}/`,
      allowCidrs: [],
      resolve: async () => ['127.0.0.1'],
    });
    expect(result).toEqual({ kind: 'failed', failure: 'url_refused', detail: 'INVALID_CALLBACK_URL' });
    expect(hits).toBe(0);
  });

  test('resolves a name once and connects only to the checked address', async () => {
    let lookups = 0;
    const good = http.createServer((_request, response) => response.end());
    const port = await listen(good);
    const resolve = async () => {
      lookups += 1;
      return lookups === 1 ? ['127.0.0.1'] : ['169.254.169.254'];
    };
    expect(await post({ url: `http://rebind.example:${port}/`, resolve })).toMatchObject({ status: 200 });
    expect(lookups).toBe(1);
    expect(await post({ url: `http://rebind.example:${port}/`, resolve })).toMatchObject({ failure: 'url_refused' });
  });

  test('tries the next address when the first is dead', async () => {
    const port = await listen(http.createServer((_request, response) => response.end()));
    // Nothing listens on 127.0.0.9.
    const resolve = async () => ['127.0.0.9', '127.0.0.1'];
    expect(await post({ url: `http://two.example:${port}/`, resolve })).toMatchObject({ status: 200 });
  });

  test('times out while the name server is silent', async () => {
    const resolve = () => new Promise<string[]>(() => {});
    expect(await post({ url: 'https://slow.example.com/', resolve, timeoutMs: 50 })).toMatchObject({
      failure: 'timeout',
    });
  });
});

describe('request over TLS', () => {
  const named = selfSignedCertificate({ dns: ['receiver.example'], ipv4: ['127.0.0.1'] });
  const resolve = async () => ['127.0.0.1'];

  async function tlsReceiver() {
    const seen: { servername: string | false | null; host: string | undefined }[] = [];
    const server = https.createServer(named, (request, response) => {
      seen.push({ servername: (request.socket as TLSSocket).servername, host: request.headers.host });
      response.end('ok');
    });
    return { seen, port: await listen(server) };
  }

  test('uses the original name for SNI, Host and certificate', async () => {
    const { seen, port } = await tlsReceiver();
    const result = await post({ url: `https://receiver.example:${port}/`, resolve, ca: named.cert });
    expect(result).toMatchObject({ status: 200 });
    expect(seen).toEqual([{ servername: 'receiver.example', host: `receiver.example:${port}` }]);
  });

  test("checks an IP address against the certificate's addresses", async () => {
    const { port } = await tlsReceiver();
    expect(await post({ url: `https://127.0.0.1:${port}/`, ca: named.cert })).toMatchObject({ status: 200 });
    expect(await post({ url: `https://127.0.0.2:${port}/`, ca: named.cert })).toMatchObject({ kind: 'failed' });
  });

  test('sends nothing to a certificate for another name or from an unknown CA', async () => {
    const { seen, port } = await tlsReceiver();
    expect(await post({ url: `https://other.example:${port}/`, resolve, ca: named.cert })).toMatchObject({
      failure: 'tls_failed',
      detail: 'ERR_TLS_CERT_ALTNAME_INVALID',
    });
    expect(await post({ url: `https://receiver.example:${port}/`, resolve })).toMatchObject({ failure: 'tls_failed' });
    expect(seen).toEqual([]);
  });

  test('fails the handshake with a receiver without TLS', async () => {
    const port = await listen(http.createServer((_request, response) => response.end()));
    expect(await post({ url: `https://127.0.0.1:${port}/`, timeoutMs: 5_000 })).toMatchObject({
      failure: 'tls_failed',
    });
  });
});
