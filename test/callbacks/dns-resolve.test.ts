import type { Socket } from 'node:dgram';
import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { afterEach, expect, test } from 'vitest';
import { checkCallbackUrl } from '../../actors/callbacks/callback-url.ts';
import { createDnsResolve } from '../../actors/callbacks/dns-resolve.ts';
import { createServiceDns } from '../../actors/service-dns.ts';

const A = 1;
const AAAA = 28;
const SRV = 33;
const opened: Socket[] = [];
afterEach(() => {
  for (const socket of opened.splice(0)) socket.close();
});

/** A name server (RFC 1035 §4) that answers by record type only; an empty list is NODATA, null no answer. */
async function openNameServer(answer: (type: number) => Buffer[] | 'SERVFAIL' | null): Promise<string> {
  const socket = createSocket('udp4');
  opened.push(socket);
  socket.on('message', (query, peer) => {
    const questionEnd = query.indexOf(0, 12) + 5;
    const type = query.readUInt16BE(questionEnd - 4);
    const answered = answer(type);
    if (answered === null) return;
    const [records, code] = answered === 'SERVFAIL' ? [[], 2] : [answered, 0];
    const header = Buffer.from([0, 0, 0x81, 0x80 + code, 0, 1, 0, records.length, 0, 0, 0, 0]);
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

test('both address families are queried and combined', async () => {
  const server = await openNameServer((type) => (type === A ? [ipv4(8, 8, 8, 8), ipv4(8, 8, 4, 4)] : [loopback6]));
  const resolve = createDnsResolve({ servers: [server] });
  expect([...(await resolve('hooks.example.com'))].sort()).toEqual(['8.8.4.4', '8.8.8.8', '::1']);
});

test('a private address in either family rejects the host', async () => {
  const server = await openNameServer((type) => (type === A ? [ipv4(8, 8, 8, 8)] : [loopback6]));
  const resolve = createDnsResolve({ servers: [server] });
  await expect(checkCallbackUrl('https://hooks.example.com/', { allowCidrs: [], resolve })).rejects.toMatchObject({
    code: 'INVALID_CALLBACK_URL',
  });
});

test('a name with one family resolves, and one without addresses fails', async () => {
  const onlyIpv4 = await openNameServer((type) => (type === A ? [ipv4(8, 8, 8, 8)] : []));
  expect(await createDnsResolve({ servers: [onlyIpv4] })('hooks.example.com')).toEqual(['8.8.8.8']);
  const neither = await openNameServer(() => []);
  await expect(createDnsResolve({ servers: [neither] })('hooks.example.com')).rejects.toMatchObject({
    code: 'ENODATA',
  });
});

test('a failure of the name server is not taken for a name without addresses', async () => {
  for (const failing of [A, AAAA]) {
    const server = await openNameServer((type) => (type === failing ? 'SERVFAIL' : []));
    const resolving = createDnsResolve({ servers: [server] })('hooks.example.com');
    await expect(resolving).rejects.toMatchObject({ code: 'ESERVFAIL' });
  }
});

test('an abort cancels a query to a silent name server', async () => {
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

/** Labels, each with its length (RFC 1035 §3.1). */
function domainName(text: string): Buffer {
  return Buffer.concat([...text.split('.').map(characterString), Buffer.from([0])]);
}

function characterString(text: string): Buffer {
  return Buffer.concat([Buffer.from([text.length]), Buffer.from(text, 'latin1')]);
}

test('SRV and NAPTR records are parsed, and missing ones give empty lists', async () => {
  const srv = Buffer.concat([Buffer.from([0, 10, 0, 70, 0x13, 0xce]), domainName('sip1.carrier.example')]);
  const naptr = Buffer.concat([
    Buffer.from([0, 50, 0, 20]),
    ...['s', 'SIP+D2T', ''].map(characterString),
    domainName('_sip._tcp.carrier.example'),
  ]);
  const full = createServiceDns({ servers: [await openNameServer((type) => [type === SRV ? srv : naptr])] });
  expect(await full.srv('_sip._tcp.carrier.example')).toMatchObject([
    { priority: 10, weight: 70, port: 5070, name: 'sip1.carrier.example' },
  ]);
  expect(await full.naptr('carrier.example')).toMatchObject([
    { order: 50, preference: 20, flags: 's', service: 'SIP+D2T', replacement: '_sip._tcp.carrier.example' },
  ]);
  const empty = createServiceDns({ servers: [await openNameServer(() => [])] });
  expect([await empty.srv('carrier.example'), await empty.naptr('carrier.example')]).toEqual([[], []]);
});

test('an unanswered service query fails when aborted', async () => {
  const silent = createServiceDns({ servers: [await openNameServer(() => null)] });
  const controller = new AbortController();
  const asked = silent.srv('carrier.example', controller.signal);
  controller.abort();
  await expect(asked).rejects.toMatchObject({ code: 'ECANCELLED' });
});
