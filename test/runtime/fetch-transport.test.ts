import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, getDefaultAutoSelectFamilyAttemptTimeout } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { promisify } from 'node:util';
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

  it('keeps a longer time to connect that the operator has set', async () => {
    const script = `
      import { getDefaultAutoSelectFamilyAttemptTimeout } from 'node:net';
      import { replaceFetchTransport } from ${JSON.stringify(import.meta.resolve('../../runtime/fetch-transport.ts'))};
      await replaceFetchTransport();
      process.stdout.write(String(getDefaultAutoSelectFamilyAttemptTimeout()));`;
    const env = { ...process.env, NODE_OPTIONS: '--network-family-autoselection-attempt-timeout=5000' };
    const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], { env });
    expect(stdout).toBe('5000');
  });
});
