import { describe, expect, it } from 'vitest';
import { sourceOf } from '../../sip/request-source.ts';

const PROXY = 'SIP/2.0/UDP 10.0.0.5:5070;branch=z9hG4bK1';

/** The source of a request that came from this address with these Via headers. */
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

describe('the source of a SIP request', () => {
  it('is the sender, whatever its Via headers say, when no proxy is trusted', () => {
    const via = `${PROXY},SIP/2.0/UDP 198.51.100.9;branch=z9hG4bK2;received=203.0.113.1`;
    expect(source({ via, trusted: [] })).toEqual({ host: '10.0.0.5', port: 5070 });
    expect(source({ via, trusted: ['10.0.0.6'] })).toEqual({ host: '10.0.0.5', port: 5070 });
  });

  it('is the address that a trusted proxy received it from', () => {
    const via = `${PROXY}, SIP/2.0/UDP 192.168.1.2:5060;branch=z9hG4bK2;received=203.0.113.1;rport=61000`;
    expect(source({ via })).toEqual({ host: '203.0.113.1', port: 61_000 });
  });

  it('is the address in Via when the trusted proxy had nothing to add', () => {
    expect(source({ via: `${PROXY},SIP/2.0/TCP 203.0.113.1;branch=z9hG4bK2` })).toEqual({
      host: '203.0.113.1',
      port: 5060,
    });
  });

  it('cannot be forged with a Via header of its own', () => {
    const carrier = 'SIP/2.0/UDP 10.0.0.5;branch=z9hG4bK2;received=203.0.113.1;rport=5060';
    const forged = 'SIP/2.0/UDP 198.51.100.9;branch=z9hG4bK3;received=192.0.2.1';
    expect(source({ via: `${PROXY},${carrier},${forged}` })).toEqual({ host: '203.0.113.1', port: 5060 });
  });

  it('is found behind a chain of trusted proxies, also by network and over IPv6', () => {
    const via = `${PROXY},SIP/2.0/UDP 10.0.0.9;branch=z9hG4bK2,SIP/2.0/UDP x.example;received=[2001:db8::7];branch=z9hG4bK3`;
    const trusted = ['10.0.0.0/24', 'fd00::/8'];
    expect(source({ from: '::ffff:10.0.0.5', via, trusted })).toEqual({ host: '2001:db8::7', port: 5060 });
  });

  it('is the proxy when there is no other Via header, or one that cannot be read', () => {
    expect(source({ via: PROXY })).toEqual({ host: '10.0.0.5', port: 5070 });
    expect(source({ via: `${PROXY},nonsense` })).toEqual({ host: '10.0.0.5', port: 5070 });
  });
});
