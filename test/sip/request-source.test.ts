import { describe, expect, it } from 'vitest';
import { sourceOf } from '../../sip/request-source.ts';

const PROXY = 'SIP/2.0/UDP 10.0.0.5:5070;branch=z9hG4bK1';

function source({
  from = '10.0.0.5',
  via,
  trusted = ['10.0.0.5'],
}: {
  from?: string;
  via: string;
  trusted?: string[];
}) {
  const request = {
    source_address: from,
    source_port: 5070,
    get: (name: string) => (name === 'Via' ? via : undefined),
  };
  return sourceOf(request, trusted);
}

describe('source of a SIP request', () => {
  it('equals the sender without trusted proxies, despite its Via headers', () => {
    const via = `${PROXY},SIP/2.0/UDP 198.51.100.9;branch=z9hG4bK2;received=203.0.113.1`;
    expect(source({ via, trusted: [] })).toEqual({ host: '10.0.0.5', port: 5070 });
    expect(source({ via, trusted: ['10.0.0.6'] })).toEqual({ host: '10.0.0.5', port: 5070 });
  });

  it('equals the address from which a trusted proxy received it', () => {
    const via = `${PROXY}, SIP/2.0/UDP 192.168.1.2:5060;branch=z9hG4bK2;received=203.0.113.1;rport=61000`;
    expect(source({ via })).toEqual({ host: '203.0.113.1', port: 61_000 });
  });

  it('equals the address in the Via if the trusted proxy added nothing', () => {
    expect(source({ via: `${PROXY},SIP/2.0/TCP 203.0.113.1;branch=z9hG4bK2` })).toEqual({
      host: '203.0.113.1',
      port: 5060,
    });
  });

  it('ignores a forged Via header', () => {
    const carrier = 'SIP/2.0/UDP 10.0.0.5;branch=z9hG4bK2;received=203.0.113.1;rport=5060';
    const forged = 'SIP/2.0/UDP 198.51.100.9;branch=z9hG4bK3;received=192.0.2.1';
    expect(source({ via: `${PROXY},${carrier},${forged}` })).toEqual({ host: '203.0.113.1', port: 5060 });
  });

  it.each([
    // As kamailio forwards a Via with two of its own.
    'received=203.0.113.1;rport=57224;received=198.51.100.9;branch=z9hG4bK2',
    'branch=z9hG4bK2;received=198.51.100.9; RECEIVED = 203.0.113.1',
    'rport=5060;received=198.51.100.9;rport;branch=z9hG4bK2',
  ])('stays the proxy if the sender may have written %j', (params) => {
    const via = `${PROXY},SIP/2.0/UDP 198.51.100.9:57224;${params}`;
    expect(source({ via })).toEqual({ host: '10.0.0.5', port: 5070 });
  });

  it('lies behind a chain of trusted proxies, also by network and over IPv6', () => {
    const via = `${PROXY},SIP/2.0/UDP 10.0.0.9;branch=z9hG4bK2,SIP/2.0/UDP x.example;received=[2001:db8::7];branch=z9hG4bK3`;
    const trusted = ['10.0.0.0/24', 'fd00::/8'];
    expect(source({ from: '::ffff:10.0.0.5', via, trusted })).toEqual({ host: '2001:db8::7', port: 5060 });
  });

  it('equals the proxy without another valid Via header', () => {
    expect(source({ via: PROXY })).toEqual({ host: '10.0.0.5', port: 5070 });
    expect(source({ via: `${PROXY},nonsense` })).toEqual({ host: '10.0.0.5', port: 5070 });
  });
});
