import { describe, expect, test } from 'vitest';
import { checkCallbackUrl } from '../../actors/callbacks/callback-url.ts';
import { classifyAddress, parseCidrs } from '../../actors/callbacks/public-address.ts';
import { TandemError } from '../../machines/errors.ts';
import * as fc from '../properties.ts';

const PUBLIC = '93.184.215.14';
const resolveTo =
  (...addresses: string[]) =>
  async () =>
    addresses;
const check = (url: string, options: { allow?: string[]; addresses?: string[] } = {}) =>
  checkCallbackUrl(url, {
    allowCidrs: parseCidrs(options.allow ?? []),
    resolve: resolveTo(...(options.addresses ?? [PUBLIC])),
  });
const refused = { name: 'TandemError', code: 'INVALID_CALLBACK_URL', status: 400 };

describe('checkCallbackUrl without an allow-list', () => {
  test.each([
    ['https://hooks.example.com/calls?token=a#part', 'https://hooks.example.com/calls?token=a'],
    ['https://hooks.example.com:8443/', 'https://hooks.example.com:8443/'],
    ['https://HOOKS.Example.com./x', 'https://hooks.example.com./x'],
    ['https://8.8.8.8/', 'https://8.8.8.8/'],
    ['https://134744072/', 'https://8.8.8.8/'],
    ['https://[2606:4700::6810:84e5]/', 'https://[2606:4700::6810:84e5]/'],
    ['https://bücher.example.com/', 'https://xn--bcher-kva.example.com/'],
  ])('accepts %s as %s', async (given, kept) => {
    expect((await check(given)).url.href).toBe(kept);
  });

  test.each([
    ['plain http', 'http://hooks.example.com/'],
    ['another scheme', 'ftp://hooks.example.com/'],
    ['a scheme without a host', 'javascript:alert(1)'],
    ['file', 'file:///etc/passwd'],
    ['no URL', 'hooks.example.com/x'],
    ['nothing', ''],
    ['a user', 'https://user@hooks.example.com/'],
    ['a user and password', 'https://user:secret@hooks.example.com/'],
    ['an empty user with a password', 'https://:secret@hooks.example.com/'],
    ['port 0', 'https://hooks.example.com:0/'],
    ['a port out of range', 'https://hooks.example.com:65536/'],
    ['an empty label', 'https://hooks..example.com/'],
    ['two trailing dots', 'https://hooks.example.com../'],
    ['only dots', 'https://./'],
    ['over 2048 characters', `https://hooks.example.com/${'a'.repeat(2048)}`],
    ['a name over 253 characters', `https://${'a.'.repeat(130)}example.com/`],
    ['localhost', 'https://localhost/'],
    ['LOCALHOST with a dot', 'https://LOCALHOST./'],
    ['below localhost', 'https://app.localhost/'],
    ['a single label', 'https://intranet/'],
    ['.local', 'https://printer.local/'],
    ['.internal', 'https://metadata.google.internal/'],
    ['.internal with a dot', 'https://metadata.google.internal./'],
    ['home.arpa', 'https://router.home.arpa/'],
    ['.lan', 'https://nas.lan/'],
    ['loopback', 'https://127.0.0.1/'],
    ['loopback with a dot', 'https://127.0.0.1./'],
    ['all of 127/8', 'https://127.255.1.2/'],
    ['short loopback', 'https://127.1/'],
    ['decimal loopback', 'https://2130706433/'],
    ['octal loopback', 'https://0177.0.0.1/'],
    ['octal without dots', 'https://017700000001/'],
    ['hex loopback', 'https://0x7f000001/'],
    ['hex parts', 'https://0x7f.0.0.0x1/'],
    ['full-width digits', 'https://１２７.０.０.１/'],
    ['circled digits', 'https://①②⑦.⓪.⓪.①/'],
    ['percent-encoded loopback', 'https://%31%32%37.0.0.1/'],
    ['unspecified', 'https://0.0.0.0/'],
    ['zero', 'https://0/'],
    ['this network', 'https://0.1.2.3/'],
    ['RFC 1918 10/8', 'https://10.1.2.3/'],
    ['RFC 1918 172.16/12', 'https://172.31.255.255/'],
    ['RFC 1918 192.168/16', 'https://192.168.0.1/'],
    ['link-local', 'https://169.254.1.1/'],
    ['cloud metadata', 'https://169.254.169.254/latest/meta-data/'],
    ['decimal cloud metadata', 'https://2852039166/'],
    ['CGNAT low', 'https://100.64.0.0/'],
    ['CGNAT high', 'https://100.127.255.255/'],
    ['multicast', 'https://224.0.0.1/'],
    ['reserved', 'https://240.0.0.1/'],
    ['broadcast', 'https://255.255.255.255/'],
    ['IETF protocol assignments', 'https://192.0.0.8/'],
    ['documentation 1', 'https://192.0.2.1/'],
    ['documentation 2', 'https://198.51.100.1/'],
    ['documentation 3', 'https://203.0.113.1/'],
    ['benchmarking', 'https://198.19.0.1/'],
    ['6to4 relay', 'https://192.88.99.1/'],
    ['IPv6 loopback', 'https://[::1]/'],
    ['IPv6 loopback in full', 'https://[0:0:0:0:0:0:0:1]/'],
    ['IPv6 unspecified', 'https://[::]/'],
    ['IPv6 ULA', 'https://[fd00::1]/'],
    ['IPv6 link-local', 'https://[fe80::1]/'],
    ['IPv6 site-local', 'https://[fec0::1]/'],
    ['IPv6 multicast', 'https://[ff02::1]/'],
    ['IPv6 documentation', 'https://[2001:db8::1]/'],
    ['IPv6 documentation 2', 'https://[3fff::1]/'],
    ['IPv6 benchmarking', 'https://[2001:2::1]/'],
    ['IPv6 discard', 'https://[100::1]/'],
    ['IPv6 cloud metadata', 'https://[fd00:ec2::254]/'],
    ['IPv4-mapped loopback', 'https://[::ffff:127.0.0.1]/'],
    ['IPv4-mapped loopback in hex', 'https://[::ffff:7f00:1]/'],
    ['IPv4-mapped private', 'https://[::ffff:10.0.0.1]/'],
    ['IPv4-compatible loopback', 'https://[::127.0.0.1]/'],
    ['IPv4-translated', 'https://[::ffff:0:7f00:1]/'],
    ['NAT64 loopback', 'https://[64:ff9b::7f00:1]/'],
    ['NAT64 private', 'https://[64:ff9b::10.0.0.1]/'],
    ['local-use NAT64', 'https://[64:ff9b:1::1]/'],
    ['6to4 loopback', 'https://[2002:7f00:1::]/'],
    ['6to4 private', 'https://[2002:a00:1::]/'],
    ['Teredo', 'https://[2001:0:4136:e378:8000:63bf:3fff:fdd2]/'],
    ['ISATAP in a global prefix', 'https://[2606:4700::5efe:a00:1]/'],
    ['unassigned IPv6', 'https://[4000::1]/'],
    ['a zone', 'https://[fe80::1%25eth0]/'],
  ])('rejects %s: %s', async (_name, url) => {
    await expect(check(url)).rejects.toMatchObject(refused);
  });

  test('rejects a name with any private address', async () => {
    await expect(check('https://a.example.com/', { addresses: [PUBLIC, '10.0.0.1'] })).rejects.toMatchObject(refused);
    await expect(check('https://a.example.com/', { addresses: [PUBLIC, '::1'] })).rejects.toMatchObject(refused);
  });

  test('rejects a name without valid addresses', async () => {
    const resolve = async () => {
      throw Object.assign(new Error('queryA ENOTFOUND'), { code: 'ENOTFOUND' });
    };
    await expect(checkCallbackUrl('https://a.example.com/', { allowCidrs: [], resolve })).rejects.toMatchObject(
      refused,
    );
    await expect(check('https://a.example.com/', { addresses: [] })).rejects.toMatchObject(refused);
    await expect(check('https://a.example.com/', { addresses: ['0177.0.0.1'] })).rejects.toMatchObject(refused);
  });

  test('rejects an internal name without a DNS query', async () => {
    let asked = 0;
    const resolve = async () => {
      asked += 1;
      return [PUBLIC];
    };
    await expect(checkCallbackUrl('https://db.internal/', { allowCidrs: [], resolve })).rejects.toMatchObject(refused);
    expect(asked).toBe(0);
  });

  test('returns the checked addresses, and a TLS name without brackets and trailing dot', async () => {
    expect(await check('https://a.example.com./x', { addresses: [PUBLIC, '2606:4700::1'] })).toMatchObject({
      hostname: 'a.example.com',
      addresses: [PUBLIC, '2606:4700::1'],
    });
    expect(await check('https://[2606:4700::1]/')).toMatchObject({
      hostname: '2606:4700::1',
      addresses: ['2606:4700::1'],
    });
  });

  test('accepts or rejects any text with a single error code', async () => {
    const anyUrl = fc.oneof(
      fc.string(),
      fc.webUrl(),
      fc.string().map((host) => `https://${host}/`),
    );
    await fc.assert(
      fc.asyncProperty(anyUrl, async (text) => {
        const outcome = await check(text).catch((error: unknown) => error);
        if (outcome instanceof Error) {
          expect(outcome).toBeInstanceOf(TandemError);
          expect(outcome).toMatchObject(refused);
        } else {
          expect((outcome as { url: URL }).url.protocol).toBe('https:');
        }
      }),
    );
  });
});

describe('checkCallbackUrl with an allow-list', () => {
  test.each([
    ['plain http on loopback', 'http://127.0.0.1:8080/hook', ['127.0.0.0/8']],
    ['https on loopback', 'https://127.0.0.1:8443/hook', ['127.0.0.0/8']],
    ['localhost when only IPv4 is open', 'http://localhost:8080/hook', ['127.0.0.1/32']],
    ['localhost when only IPv6 is open', 'http://localhost:8080/hook', ['::1']],
    ['the mapped form of an open address', 'http://[::ffff:127.0.0.1]/', ['127.0.0.1']],
    ['an open address through a mapped range', 'http://127.0.0.1/', ['::ffff:127.0.0.0/104']],
    ['an open ULA', 'http://[fd12::1]/', ['fd00::/8']],
  ])('accepts %s', async (_name, url, allow) => {
    expect((await check(url, { allow })).addresses.length).toBeGreaterThan(0);
  });

  test('accepts an internal name whose addresses are all allowed', async () => {
    const open = { allow: ['172.16.0.0/12'], addresses: ['172.18.0.3'] };
    expect(await check('http://receiver:9000/hook', open)).toMatchObject({ addresses: ['172.18.0.3'] });
  });

  test.each([
    ['http to a public address', 'http://a.example.com/', [PUBLIC]],
    ['http when one address is public', 'http://a.example.com/', [PUBLIC, '127.0.0.1']],
    ['an internal name with a public address', 'https://db.internal/', [PUBLIC]],
    ['another private range', 'https://a.example.com/', ['10.0.0.1']],
    ['an address outside the range', 'https://a.example.com/', ['128.0.0.1', '192.168.1.1']],
  ])('still rejects %s', async (_name, url, addresses) => {
    await expect(check(url, { allow: ['127.0.0.0/8'], addresses })).rejects.toMatchObject(refused);
  });

  test('resolves localhost without a DNS query', async () => {
    const checked = await check('http://localhost/', { allow: ['127.0.0.0/8'], addresses: ['10.0.0.1'] });
    expect(checked.addresses).toEqual(['127.0.0.1']);
  });

  test.each(['127.0.0.0/33', '10.0.0/8', 'localhost', '', '0177.0.0.1', '::1/129', '1.2.3.4/', '/8'])(
    'fails the start for the entry %j',
    (entry) => {
      expect(() => parseCidrs([entry])).toThrow(RangeError);
    },
  );
});

test('every IPv4 special range is blocked in plain and in IPv6-mapped form', () => {
  const octet = fc.integer({ min: 0, max: 255 });
  const special = fc.oneof(
    fc.tuple(fc.constantFrom(0, 10, 127, 224, 239, 240, 255), octet, octet, octet),
    fc.tuple(fc.constant(100), fc.integer({ min: 64, max: 127 }), octet, octet),
    fc.tuple(fc.constant(172), fc.integer({ min: 16, max: 31 }), octet, octet),
    fc.tuple(fc.constant(192), fc.constant(168), octet, octet),
    fc.tuple(fc.constant(169), fc.constant(254), octet, octet),
    fc.tuple(fc.constant(198), fc.constantFrom(18, 19), octet, octet),
  );
  fc.assert(
    fc.property(special, (octets) => {
      const address = octets.join('.');
      expect(classifyAddress(address, [])).toBe('refused');
      expect(classifyAddress(`::ffff:${address}`, [])).toBe('refused');
    }),
  );
});
