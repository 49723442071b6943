import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, getDefaultAutoSelectFamilyAttemptTimeout } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { replaceFetchTransport } from '../../runtime/fetch-transport.ts';

const BODY = Buffer.alloc(3_000_000, 'x');

/** Closes the connection after each response, long before a slow reader finishes. */
const server = createServer((_, response) => {
  response.writeHead(200, { 'content-length': BODY.length, connection: 'close' }).end(BODY);
});
beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(() => void server.close());

describe('replaced fetch transport', () => {
  it('reads the whole body in ten of ten attempts, although the server closes before the reader finishes', async () => {
    await replaceFetchTransport();
    for (let i = 0; i < 10; i++) {
      const response = await fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
      let bytes = 0;
      for await (const chunk of response.body ?? []) {
        bytes += chunk.byteLength;
        for (let turns = 0; turns < 20; turns++) await turn();
      }
      expect(bytes).toBe(BODY.length);
    }
  });

  it('gives each address of a host a second to connect, as distant servers need', async () => {
    await replaceFetchTransport();
    expect(getDefaultAutoSelectFamilyAttemptTimeout()).toBe(1_000);
  });
});
