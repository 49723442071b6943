import type { Socket } from 'node:dgram';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { afterEach, expect, test } from 'vitest';
import { checkCallbackUrl } from '../../actors/callbacks/callback-url.ts';
import { createDnsResolve } from '../../actors/callbacks/dns-resolve.ts';

const A = 1;
const AAAA = 28;
const opened: Socket[] = [];
afterEach(() => {
  for (const socket of opened.splice(0)) socket.close();
});

/** A name server (RFC 1035 §4) that answers by record type alone; an empty list is NODATA, null is silence. */
async function openNameServer(answer: (type: number) => Buffer[] | null): Promise<string> {
  const socket = createSocket('udp4');
  opened.push(socket);
  socket.on('message', (query, peer) => {
    const questionEnd = query.indexOf(0, 12) + 5;
    const type = query.readUInt16BE(questionEnd - 4);
    const records = answer(type);
    if (records === null) return;
    const header = Buffer.from([0, 0, 0x81, 0x80, 0, 1, 0, records.length, 0, 0, 0, 0]);
    query.copy(header, 0, 0, 2);
    const body = records.map((data) =>
      Buffer.concat([Buffer.from([0xc0, 12, 0, type, 0, 1, 0, 0, 0, 60, 0, data.length]), data]),
    );
    socket.send(Buffer.concat([header, query.subarray(12, questionEnd), ...body]), peer.port, peer.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  return `127.0.0.1:${socket.address().port}`;
}

const ipv4 = (...octets: number[]) => Buffer.from(octets);
const loopback6 = Buffer.from('00000000000000000000000000000001', 'hex');

test('both families are asked for and put together', async () => {
  const server = await openNameServer((type) => (type === A ? [ipv4(8, 8, 8, 8), ipv4(8, 8, 4, 4)] : [loopback6]));
  const resolve = createDnsResolve({ servers: [server] });
  expect([...(await resolve('hooks.example.com'))].sort()).toEqual(['8.8.4.4', '8.8.8.8', '::1']);
});

test('a private address in the other family is enough to refuse a host', async () => {
  const server = await openNameServer((type) => (type === A ? [ipv4(8, 8, 8, 8)] : [loopback6]));
  const resolve = createDnsResolve({ servers: [server] });
  await expect(checkCallbackUrl('https://hooks.example.com/', { allowCidrs: [], resolve })).rejects.toMatchObject({
    code: 'INVALID_CALLBACK_URL',
  });
});

test('a name with one family only resolves, one with neither does not', async () => {
  const onlyIpv4 = await openNameServer((type) => (type === A ? [ipv4(8, 8, 8, 8)] : []));
  expect(await createDnsResolve({ servers: [onlyIpv4] })('hooks.example.com')).toEqual(['8.8.8.8']);
  const neither = await openNameServer(() => []);
  await expect(createDnsResolve({ servers: [neither] })('hooks.example.com')).rejects.toMatchObject({
    code: 'ENODATA',
  });
});

test('a silent name server is given up on when the owner aborts', async () => {
  const owner = new AbortController();
  const asked = new Set<number>();
  const server = await openNameServer((type) => {
    asked.add(type);
    if (asked.has(A) && asked.has(AAAA)) owner.abort();
    return null;
  });
  const resolve = createDnsResolve({ servers: [server] });
  await expect(resolve('hooks.example.com', owner.signal)).rejects.toMatchObject({ code: 'ECANCELLED' });
});
