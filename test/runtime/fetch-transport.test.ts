import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { replaceFetchTransport } from '../../runtime/fetch-transport.ts';

const BODY = Buffer.alloc(3_000_000, 'x');

/** Closes the connection behind each answer, long before a slow reader has all of it. */
const server = createServer((_, response) => {
  response.writeHead(200, { 'content-length': BODY.length, connection: 'close' }).end(BODY);
});
beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(() => void server.close());

describe('the replaced transport of fetch', () => {
  it('reads the whole body, ten times of ten, from a server that is done before the reader', async () => {
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
});
