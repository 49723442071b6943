import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { connect as connectSocket } from 'node:net';
import { describe, expect, it } from 'vitest';
import { eventually } from '../eventually.ts';
import { seedTrunk, seedWorkspace } from '../storage/seed.ts';
import { createHttpFixture } from './fixture.ts';
import { seedCall } from './seed-calls.ts';

describe('malformed HTTP on the wire', () => {
  it.each([
    ['bytes that are not HTTP', 'EHLO example.com\r\n\r\n', 400, 'VALIDATION_FAILED'],
    [
      'headers beyond 16 KiB',
      `GET / HTTP/1.1\r\nhost: a\r\nx-a: ${'a'.repeat(20_000)}\r\n\r\n`,
      431,
      'VALIDATION_FAILED',
    ],
    ['an unknown method', 'PROPFIND /nowhere HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n', 404, 'NOT_FOUND'],
    ['an undecodable path', 'GET /%zz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n', 400, 'VALIDATION_FAILED'],
    ['no host', 'GET /dialer/pool HTTP/1.1\r\nconnection: close\r\n\r\n', 400, 'VALIDATION_FAILED'],
    ['no host, in HTTP/1.0', 'GET /dialer/pool HTTP/1.0\r\n\r\n', 401, 'UNAUTHORIZED'],
    [
      'two hosts',
      'GET /dialer/pool HTTP/1.1\r\nhost: a\r\nHost: a\r\nconnection: close\r\n\r\n',
      400,
      'VALIDATION_FAILED',
    ],
    [
      'two hosts in one',
      'GET /dialer/pool HTTP/1.1\r\nhost: a, b\r\nconnection: close\r\n\r\n',
      400,
      'VALIDATION_FAILED',
    ],
    [
      'a handshake with two hosts',
      'GET /ws/phone HTTP/1.1\r\nhost: a\r\nhost: b\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n',
      400,
      'VALIDATION_FAILED',
    ],
    [
      'an unknown expectation',
      'GET /dialer/pool HTTP/1.1\r\nhost: a\r\nexpect: wonders\r\nconnection: close\r\n\r\n',
      401,
      'UNAUTHORIZED',
    ],
    [
      'an unsupported upgrade',
      'GET /dialer/pool HTTP/1.1\r\nhost: a\r\nconnection: upgrade, close\r\nupgrade: websocket\r\n\r\n',
      401,
      'UNAUTHORIZED',
    ],
    ['a tunnel', 'CONNECT example.com:443 HTTP/1.1\r\nhost: a\r\n\r\n', 405, 'METHOD_NOT_ALLOWED'],
    ['the asterisk form', 'OPTIONS * HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n', 404, 'NOT_FOUND'],
    [
      'two content lengths',
      'POST /dialer/click2call HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n',
      400,
      'VALIDATION_FAILED',
    ],
  ])('%s get the error envelope', async (_name, bytes, status, code) => {
    await using server = await createHttpFixture();
    const { port } = new URL(await server.app.listen({ host: '127.0.0.1', port: 0 }));
    const [head, body] = (await exchange(Number(port), bytes)).split('\r\n\r\n');
    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
    expect(head?.toLowerCase()).toContain('x-request-id: ');
    expect(head?.toLowerCase()).toContain('x-ratelimit-remaining: ');
    expect(JSON.parse(body!)).toMatchObject({ success: false, code });
  });
});

it('a client that disconnects during its body causes no server error', async () => {
  await using server = await createHttpFixture();
  const { workspace } = await seedWorkspace(server.sql);
  const { key } = await server.addMemberWith('member', workspace.id);
  const { port } = new URL(await server.app.listen({ host: '127.0.0.1', port: 0 }));
  const arrived = once(server.app.server, 'request');
  const socket = connectSocket({ host: '127.0.0.1', port: Number(port) });
  const headers = `host: a\r\nauthorization: Bearer ${key}\r\ncontent-type: application/json\r\ncontent-length: 99`;
  socket.write(`POST /v1/chat/completions HTTP/1.1\r\n${headers}\r\n\r\n{"messages"`);
  // The server checks credentials before it waits for the body.
  const [request] = (await arrived) as [IncomingMessage];
  await eventually(() => expect(request.listenerCount('data')).toBeGreaterThan(0));
  socket.destroy();
  const line = await eventually(() => {
    const found = server.logLines.find((logged) => logged.includes('CLIENT_CANCELLED'));
    expect(found).toBeDefined();
    return JSON.parse(found!);
  });
  expect(line).toMatchObject({ level: 'info', msg: 'client disconnected while sending its request' });
  expect(server.logLines.filter((logged) => logged.includes('"level":"error"'))).toEqual([]);
});

it('garbage after a request does not corrupt the pending response', async () => {
  await using server = await createHttpFixture();
  const { workspace } = await seedWorkspace(server.sql);
  const member = await server.addMemberWith('member', workspace.id);
  await seedTrunk(server.sql, { workspaceId: workspace.id });
  const { callId } = await seedCall(server, { by: member });
  const { port } = new URL(await server.app.listen({ host: '127.0.0.1', port: 0 }));
  const received = await new Promise<string>((resolve, reject) => {
    let text = '';
    const socket = connectSocket({ host: '127.0.0.1', port: Number(port) });
    socket.write(
      `GET /dialer/click2call/${callId}/stream HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${member.key}\r\n\r\n`,
    );
    socket.on('data', (chunk) => {
      text += chunk;
      if (text.includes('retry: ')) socket.write('garbage\r\n\r\n');
    });
    socket.on('close', () => resolve(text));
    socket.on('error', reject);
  });
  expect(received.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 200']);
});

function exchange(port: number, bytes: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = connectSocket({ host: '127.0.0.1', port }, () => socket.write(bytes));
    socket.on('data', (chunk) => chunks.push(chunk));
    socket.on('close', () => resolve(Buffer.concat(chunks).toString()));
    socket.on('error', reject);
  });
}
