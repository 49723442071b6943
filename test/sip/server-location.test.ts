import { describe, expect, it } from 'vitest';
import { locateServers, type SipDns } from '../../sip/server-location.ts';

interface Zone {
  /** `order preference flags service replacement` */
  naptr?: Record<string, string[]>;
  /** `priority weight port target` */
  srv?: Record<string, string[]>;
  addresses?: Record<string, string[]>;
}

function dnsOf({ naptr = {}, srv = {}, addresses = {} }: Zone): SipDns {
  return {
    naptr: async (name) =>
      (naptr[name] ?? []).map((record) => {
        const [order, preference, flags = '', service = '', replacement = ''] = record.split(' ');
        return { order: Number(order), preference: Number(preference), flags, service, regexp: '', replacement };
      }),
    srv: async (name) =>
      (srv[name] ?? []).map((record) => {
        const [priority, weight, port, target = ''] = record.split(' ');
        return { priority: Number(priority), weight: Number(weight), port: Number(port), name: target };
      }),
    addresses: async (name) => addresses[name] ?? [],
  };
}

/** `transport address:port`, in order. */
async function located(sipUri: string, transport: 'udp' | 'tcp' | 'tls' | 'auto', zone: Zone): Promise<string[]> {
  const hops = await locateServers({ sipUri, transport }, { dns: dnsOf(zone), random: () => 0 });
  return hops.map(({ address, port, transport: by }) => `${by} ${address}:${port}`);
}

const ADDRESSES = {
  'carrier.example': ['192.0.2.9', '2001:db8::9'],
  'a.example': ['192.0.2.1'],
  'b.example': ['192.0.2.2'],
};

describe('location of SIP servers (RFC 3263)', () => {
  it.each(['sip:192.0.2.7', 'sip:[2001:db8::7]', 'sip:192.0.2.7:5080'])(
    'uses the address in %s as it is',
    async (uri) => {
      const [address] = /192\.0\.2\.7|2001:db8::7/.exec(uri)!;
      expect(await located(uri, 'tcp', {})).toEqual([`tcp ${address}:null`]);
    },
  );

  it('ignores SRV records of a host with a port', async () => {
    const srv = { '_sip._udp.carrier.example': ['0 0 5070 a.example'] };
    const zone = { srv, addresses: ADDRESSES };
    expect(await located('sip:carrier.example:5080', 'udp', zone)).toEqual([
      'udp 192.0.2.9:null',
      'udp 2001:db8::9:null',
    ]);
  });

  it.each([
    { transport: 'udp', name: '_sip._udp.carrier.example' },
    { transport: 'tcp', name: '_sip._tcp.carrier.example' },
    { transport: 'tls', name: '_sips._tcp.carrier.example' },
  ] as const)('orders the servers of $name by priority', async ({ transport, name }) => {
    const srv = { [name]: ['20 0 5072 b.example', '10 0 5071 a.example'] };
    expect(await located('sip:carrier.example', transport, { srv, addresses: ADDRESSES })).toEqual([
      `${transport} 192.0.2.1:5071`,
      `${transport} 192.0.2.2:5072`,
    ]);
  });

  it('uses the addresses of the host without SRV records', async () => {
    expect(await located('sip:carrier.example', 'udp', { addresses: ADDRESSES })).toEqual([
      'udp 192.0.2.9:null',
      'udp 2001:db8::9:null',
    ]);
    expect(await located('sip:unknown.example', 'udp', {})).toEqual([]);
  });

  it('rejects a domain whose SRV record excludes SIP', async () => {
    const srv = { '_sip._udp.carrier.example': ['0 0 0 .'] };
    await expect(located('sip:carrier.example', 'udp', { srv, addresses: ADDRESSES })).rejects.toMatchObject({
      code: 'dns.no_service',
    });
  });

  it('always uses TLS for a sips URI', async () => {
    const srv = { '_sips._tcp.carrier.example': ['0 0 5071 a.example'] };
    expect(await located('sips:carrier.example', 'udp', { srv, addresses: ADDRESSES })).toEqual(['tls 192.0.2.1:5071']);
  });

  describe('with transport auto', () => {
    const srv = {
      '_sip._udp.a.example': ['0 0 5060 a.example'],
      '_sips._tcp.b.example': ['0 0 5061 b.example'],
      '_sip._tcp.carrier.example': ['0 0 5070 b.example'],
    };

    it('prefers the NAPTR record with the lowest order, then preference', async () => {
      const udp = '50 20 s SIP+D2U _sip._udp.a.example';
      const tls = (preference: number) => `50 ${preference} S sips+d2t _sips._tcp.b.example`;
      const zone = (records: string[]) => ({ naptr: { 'carrier.example': records }, srv, addresses: ADDRESSES });
      expect(await located('sip:carrier.example', 'auto', zone([udp, tls(10)]))).toEqual(['tls 192.0.2.2:5061']);
      expect(await located('sip:carrier.example', 'auto', zone([tls(30), udp]))).toEqual(['udp 192.0.2.1:5060']);
    });

    it('skips NAPTR records of other services, and services without servers', async () => {
      const naptr = {
        'carrier.example': [
          '1 1 u E2U+sip .',
          '2 1 s SIP+D2S _sip._sctp.carrier.example',
          '3 1 s SIP+D2T _sip._tcp.missing.example',
          '4 1 s SIP+D2U _sip._udp.a.example',
        ],
      };
      const zone = { naptr, srv, addresses: ADDRESSES };
      expect(await located('sip:carrier.example', 'auto', zone)).toEqual(['udp 192.0.2.1:5060']);
    });

    it('tries SRV records of UDP, TCP and TLS without NAPTR records, and then UDP at the host', async () => {
      expect(await located('sip:carrier.example', 'auto', { srv, addresses: ADDRESSES })).toEqual([
        'tcp 192.0.2.2:5070',
      ]);
      expect(await located('sip:carrier.example', 'auto', { addresses: ADDRESSES })).toEqual([
        'udp 192.0.2.9:null',
        'udp 2001:db8::9:null',
      ]);
    });
  });

  it('returns 32 addresses at most', async () => {
    const targets = Array.from({ length: 100 }, (_, i) => `0 1 5060 t${i}.example`);
    const addresses = Object.fromEntries(
      Array.from({ length: 100 }, (_, i) => [`t${i}.example`, Array.from({ length: 9 }, (__, j) => `10.0.${i}.${j}`)]),
    );
    const srv = { '_sip._udp.carrier.example': targets };
    expect(await located('sip:carrier.example', 'udp', { srv, addresses })).toHaveLength(32);
  });
});
