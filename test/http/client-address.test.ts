import Fastify from 'fastify';
import { expect, it } from 'vitest';
import { addressOf, addressOfUpgrade } from '../../http/client-address.ts';

const PROXIES = [['loopback'], [], ['10.0.0.0/8', '::1'], ['uniquelocal', 'loopback'], ['127.0.0.1', '192.0.2.7']];
const FORWARDED = [
  undefined,
  '198.51.100.1',
  '198.51.100.1, 10.0.0.1',
  '198.51.100.1,192.0.2.7,10.0.0.1',
  'fd00::1, 172.16.0.1',
  'nonsense',
  'nonsense, 10.0.0.1',
  '',
];
const SOCKETS = ['127.0.0.1', '::ffff:127.0.0.1', '10.1.2.3', '203.0.113.9', '::1'];

it('identifies a client alike in upgrades and in requests', async () => {
  for (const trustedProxies of PROXIES) {
    await using app = Fastify({ trustProxy: trustedProxies });
    app.get('/', async (request) => addressOf(request));
    for (const remoteAddress of SOCKETS) {
      for (const forwarded of FORWARDED) {
        const headers = forwarded === undefined ? {} : { 'x-forwarded-for': forwarded };
        const { body } = await app.inject({ url: '/', remoteAddress, headers });
        const upgrade = { socket: { remoteAddress }, headers };
        const about = JSON.stringify({ trustedProxies, remoteAddress, forwarded });
        expect(addressOfUpgrade(upgrade, trustedProxies), about).toBe(body);
      }
    }
  }
});
