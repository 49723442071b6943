import { createSocket } from 'node:dgram';
import { describe, expect, it } from 'vitest';
import { openNetwork } from '../../../sip/embedded/transport/network.ts';
import { createReception } from '../../../sip/embedded/transport/reception.ts';
import { type DroppedMessages, SourceLimits } from '../../../sip/embedded/transport/source-limits.ts';
import { type SipMessage, serializeMessage } from '../../../sip/message/index.ts';
import { eventually } from '../../eventually.ts';
import { CoreBench, PEER } from './core-bench.ts';
import { SimulatedClock } from './simulated-clock.ts';

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

  it('allows a carrier twenty times as many in-dialog messages in the long run, beside new calls', () => {
    const clock = { nowMs: 0 };
    const limits = limitsAt(clock, 100, 200);
    const verdicts = new Set<string>();
    for (let second = 0; second < 60; second++) {
      for (let count = 0; count < 1_500; count++) {
        clock.nowMs += 2 / 3;
        verdicts.add(limits.take('192.0.2.1'));
        // Every hundredth is a new call.
        if (count % 100 !== 0) limits.refund('192.0.2.1');
      }
    }
    expect([...verdicts]).toEqual(['accepted']);
  });

  it('combines the addresses of an IPv6 network in any notation', () => {
    const limits = limitsAt({ nowMs: 0 }, 1, 2);
    expect(limits.take('2001:db8::1')).toBe('accepted');
    expect(limits.take('2001:db8:0:0:ffff::2')).toBe('accepted');
    expect(limits.take('2001:db8::9:1')).toBe('expected-only');
    expect(limits.take('2001:db8:0:1::1')).toBe('accepted');
    expect(limits.take('::ffff:192.0.2.1')).toBe('accepted');
  });

  it('counts dropped messages by source, worst first', () => {
    const limits = limitsAt({ nowMs: 0 });
    for (let source = 1; source <= 7; source++) {
      for (let count = 0; count < source; count++) limits.drop(`192.0.2.${source}`);
    }
    expect(limits.takeDropped()).toEqual({
      total: 28,
      sources: [7, 6, 5, 4, 3].map((count) => ({ host: `192.0.2.${count}`, dropped: count })),
    });
    expect(limits.takeDropped()).toEqual({ total: 0, sources: [] });
  });

  it('remembers a bounded number of sources', () => {
    const limits = limitsAt({ nowMs: 0 });
    for (let count = 0; count < 25_000; count++) limits.take(`10.${count >> 16}.${(count >> 8) & 255}.${count & 255}`);
    expect(limits.size).toBe(20_000);
  });
});

describe('source beyond its limit', () => {
  it('may still respond and act in its calls, while its new requests are dropped', () => {
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
    for (let id = 0; id < 5; id++) reception.receive(optionsRequest(id), PEER);
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
    // A retransmission of the accepted request.
    const before = reception.dump().limited;
    reception.receive(optionsRequest(0), PEER);
    expect(reception.dump().limited).toBe(before);
  });

  it('excludes a carrier that only responds', () => {
    const bench = new CoreBench();
    const limits = limitsAt({ nowMs: 0 }, 1, 10);
    const onError = (error: unknown) => expect.unreachable(String(error));
    const reception = createReception({ listener: bench.core, onBroken: onError, onFault: onError, limits });
    const { request } = bench.invite();
    const ringing = { kind: 'response' as const, statusCode: 180, reasonPhrase: 'Ringing', body: Buffer.alloc(0) };
    for (let count = 0; count < 150; count++) {
      reception.receive(serializeMessage({ ...ringing, headers: request.headers }), PEER);
    }
    expect(reception.dump()).toMatchObject({ limited: 0 });
    reception.receive(optionsRequest(1), PEER);
    expect(reception.dump()).toMatchObject({ limited: 0 });
  });

  it('appears in a report with its dropped messages after ten seconds', async () => {
    const clock = new SimulatedClock();
    const reported: DroppedMessages[] = [];
    const received: SipMessage[] = [];
    const network = await openNetwork({
      ...{ host: '127.0.0.1', port: 0, transports: ['udp'], tls: null, messagesPerSecond: 1, clock },
      onUntrusted: () => {},
      onBroken: () => {},
      onFault: () => {},
      onLimited: (dropped) => reported.push(dropped),
      listener: {
        onMessage: (message) => received.push(message),
        isExpected: () => false,
        onUnreachable: () => {},
      },
    });
    const peer = createSocket('udp4').bind(0, '127.0.0.1');
    for (let id = 0; id < 9; id++) peer.send(optionsRequest(id), network.port, '127.0.0.1');
    const limited = () => (network.dump() as { limited: number }).limited;
    await eventually(() => expect(limited() + received.length).toBe(9));
    const dropped = limited();
    expect(dropped).toBeGreaterThan(0);
    clock.advance(9_999);
    expect(reported).toEqual([]);
    clock.advance(1);
    expect(reported).toEqual([{ total: dropped, sources: [{ host: '127.0.0.1', dropped }] }]);
    clock.advance(60_000);
    expect(reported).toHaveLength(1);
    peer.close();
    await network.close();
  });
});

function optionsRequest(id: number): Buffer {
  return Buffer.from(
    `OPTIONS sip:a@192.0.2.1 SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.7;branch=z9hG4bK-${id}\r\nFrom: <sip:a@b>;tag=${id}\r\nTo: <sip:a@b>\r\nCall-ID: ${id}\r\nCSeq: 1 OPTIONS\r\n\r\n`,
  );
}
