import { describe, expect, it } from 'vitest';
import { createReception } from '../../../sip/embedded/transport/reception.ts';
import { SourceLimits } from '../../../sip/embedded/transport/source-limits.ts';
import { serializeMessage } from '../../../sip/message/index.ts';
import { CoreBench, PEER } from './core-bench.ts';

function limitsAt(clock: { nowMs: number }, perSecond = 10, burst = 20): SourceLimits {
  return new SourceLimits({ perSecond, burst, nowMs: () => clock.nowMs });
}

describe('SourceLimits', () => {
  it('accepts a burst, then as many messages as the rate allows', () => {
    const clock = { nowMs: 0 };
    const limits = limitsAt(clock);
    const verdicts = Array.from({ length: 21 }, () => limits.take('192.0.2.1'));
    expect(verdicts.filter((each) => each === 'accepted')).toHaveLength(20);
    expect(verdicts.at(-1)).toBe('expected-only');
    clock.nowMs = 300;
    expect([1, 2, 3].map(() => limits.take('192.0.2.1'))).toEqual(['accepted', 'accepted', 'expected-only']);
  });

  it('stops reading a flood, and recovers when it ends', () => {
    const clock = { nowMs: 0 };
    const limits = limitsAt(clock);
    for (let count = 0; count < 1000; count++) limits.take('192.0.2.1');
    expect(limits.take('192.0.2.1')).toBe('rejected');
    expect(limits.take('192.0.2.2')).toBe('accepted');
    clock.nowMs = 60_000;
    expect(limits.take('192.0.2.1')).toBe('accepted');
  });

  it('counts the addresses of one IPv6 network together, however they are written', () => {
    const limits = limitsAt({ nowMs: 0 }, 1, 2);
    expect(limits.take('2001:db8::1')).toBe('accepted');
    expect(limits.take('2001:db8:0:0:ffff::2')).toBe('accepted');
    expect(limits.take('2001:db8::9:1')).toBe('expected-only');
    expect(limits.take('2001:db8:0:1::1')).toBe('accepted');
    expect(limits.take('::ffff:192.0.2.1')).toBe('accepted');
  });

  it('remembers a bounded number of sources', () => {
    const limits = limitsAt({ nowMs: 0 });
    for (let count = 0; count < 25_000; count++) limits.take(`10.${count >> 16}.${(count >> 8) & 255}.${count & 255}`);
    expect(limits.size).toBe(20_000);
  });
});

describe('a source beyond its limit', () => {
  it('may still answer our requests and act in its calls, while its new requests are counted and dropped', () => {
    const bench = new CoreBench();
    const reception = createReception({
      listener: bench.core,
      onBroken: (error, source) => bench.core.onBroken(error, source),
      onFault: (error) => {
        throw error;
      },
      limits: limitsAt({ nowMs: 0 }, 1, 1),
    });
    const { request } = bench.invite();
    const options = (id: number): Buffer =>
      Buffer.from(
        `OPTIONS sip:a@192.0.2.1 SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.7;branch=z9hG4bK-${id}\r\nFrom: <sip:a@b>;tag=${id}\r\nTo: <sip:a@b>\r\nCall-ID: ${id}\r\nCSeq: 1 OPTIONS\r\n\r\n`,
      );
    for (let id = 0; id < 5; id++) reception.receive(options(id), PEER);
    expect(reception.dump()).toMatchObject({ limited: 4, sources: 1 });
    expect(bench.delivered).toHaveLength(1);
    const answer = {
      kind: 'response' as const,
      statusCode: 180,
      reasonPhrase: 'Ringing',
      headers: request.headers,
      body: Buffer.alloc(0),
    };
    reception.receive(serializeMessage(answer), PEER);
    expect(bench.delivered).toHaveLength(2);
    // A retransmission of the request that was accepted.
    const before = reception.dump().limited;
    reception.receive(options(0), PEER);
    expect(reception.dump().limited).toBe(before);
  });
});
