import { describe, expect, it } from 'vitest';
import { DTMF_GAP_MS } from '../../media/dsp/dtmf-tones.ts';
import { toneLevelDbov } from '../../media/dsp/goertzel.ts';
import { toneFrames } from '../../media/dsp/tones.ts';
import { digitOfEvent, emptyTelephoneEvent, parseTelephoneEvent } from '../../media/rtp/telephone-event.ts';
import * as fc from '../properties.ts';
import { Bench } from './relay-bench.ts';
import type { RtpPhone } from './rtp-phone.ts';

const frame = toneFrames('PCMU', { frequenciesHz: [1000], durationMs: 20 })[0]!;

const GAP_FRAMES = DTMF_GAP_MS / 20;

interface HeardPress {
  digit: string;
  durationMs: number;
  endPackets: number;
  atMs: number;
}

/** The key presses that a phone heard, each by the timestamp that its packets share (RFC 4733 §2.5.1.2). */
function pressesHeardBy(phone: RtpPhone): HeardPress[] {
  const presses = new Map<number, HeardPress>();
  const event = emptyTelephoneEvent();
  for (const { header, payload } of phone.heard) {
    if (header.payloadType !== 101) continue;
    if (!parseTelephoneEvent(payload, 0, payload.length, event)) throw new Error('no telephone event');
    const press = presses.get(header.timestamp);
    expect(header.marker).toBe(press === undefined);
    const digit = digitOfEvent(event.event)!;
    if (press !== undefined) expect(press.digit).toBe(digit);
    presses.set(header.timestamp, {
      digit,
      durationMs: event.durationUnits / 8,
      endPackets: (press?.endPackets ?? 0) + (event.isEnd ? 1 : 0),
      atMs: header.timestamp / 8,
    });
  }
  return [...presses.values()];
}

describe('key presses that we send to a party', () => {
  it('are telephone events: each key held as long as asked, its end three times, and a gap after it', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    const end = bench.session.sendDigits('customer', { digits: '1d#', durationMs: 100 });
    bench.pace(30);
    expect(await end).toBe('played');
    await bench.customer.hears(3 * (4 + 3 + GAP_FRAMES));
    const presses = pressesHeardBy(bench.customer);
    expect(presses.map(({ digit }) => digit).join('')).toBe('1D#');
    expect(presses.every(({ durationMs, endPackets }) => durationMs === 100 && endPackets === 3)).toBe(true);
    expect(presses[1]!.atMs - presses[0]!.atMs).toBe(100 + DTMF_GAP_MS);
    expect(bench.agent.heard).toEqual([]);
  });

  it('wait half a second for w and a second for W, in silence that keeps the stream alive', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    const end = bench.session.sendDigits('customer', { digits: '1w2W3', durationMs: 100 });
    bench.pace(130);
    expect(await end).toBe('played');
    await bench.customer.hears(3 * (7 + GAP_FRAMES) + 25 + 50);
    const timestamps = bench.customer.heard.map(({ header }) => header.timestamp);
    // A phone that counts seconds without packets never gets to one.
    expect(Math.max(...timestamps.slice(1).map((timestamp, i) => timestamp - timestamps[i]!))).toBeLessThanOrEqual(800);
    const [one, two, three] = pressesHeardBy(bench.customer) as [HeardPress, HeardPress, HeardPress];
    expect([two.atMs - one.atMs, three.atMs - two.atMs]).toEqual([180 + 500, 180 + 1000]);
  });

  it('replace what the other party says meanwhile, in one continuous stream', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('bridged');
    const talk = async (frames: number): Promise<void> => {
      for (let i = 0; i < frames; i++) {
        bench.agent.say(bench.ports.agent, 'PCMU', frame);
        await bench.settled('agent');
        bench.pace(1);
      }
    };
    await talk(5);
    const end = bench.session.sendDigits('customer', { digits: '5', durationMs: 100 });
    await talk(20);
    expect(await end).toBe('played');
    await bench.customer.hears(5 + 7 + 10);
    const { heard } = bench.customer;
    const types = heard.map(({ header }) => header.payloadType);
    expect(types.slice(5, 12)).toEqual(Array(7).fill(101));
    expect(new Set([...types.slice(0, 5), ...types.slice(12)])).toEqual(new Set([0]));
    for (let i = 1; i < heard.length; i++) {
      expect((heard[i]!.header.sequence - heard[i - 1]!.header.sequence) & 0xffff).toBe(1);
    }
  });

  it('are tones for a peer that takes no telephone events', async () => {
    await using bench = await Bench.open();
    await bench.connect({ customer: bench.customer.remote('PCMA', { telephoneEventPayloadType: null }) });
    const end = bench.session.sendDigits('customer', { digits: '5', durationMs: 200 });
    bench.pace(20);
    expect(await end).toBe('played');
    await bench.customer.hears(14);
    const samples = bench.customer.samplesHeard('PCMA').subarray(0, 1600);
    for (const frequencyHz of [770, 1336]) expect(toneLevelDbov(samples, frequencyHz)).toBeGreaterThan(-20);
    for (const frequencyHz of [697, 852, 1209, 1477]) expect(toneLevelDbov(samples, frequencyHz)).toBeLessThan(-35);
    // Nobody takes them for an announcement or a whisper.
    expect(bench.events).toEqual([]);
  });

  it('are refused while the party has us on hold, and stop when it puts us there or the session closes', async () => {
    await using bench = await Bench.open();
    await bench.connect({ customer: bench.customer.remote('PCMU', { direction: 'sendonly' }) });
    expect(await bench.session.sendDigits('customer', { digits: '1', durationMs: 100 })).toBe('not-listening');
    await bench.connect();
    const held = bench.session.sendDigits('customer', { digits: '1', durationMs: 100 });
    bench.pace(2);
    await bench.connect({ customer: bench.customer.remote('PCMU', { direction: 'sendonly' }) });
    bench.pace(1);
    expect(await held).toBe('stopped');
    await bench.connect();
    const closed = bench.session.sendDigits('customer', { digits: '1', durationMs: 100 });
    await bench.session.close();
    expect(await closed).toBe('stopped');
  });

  it('stop when others are sent, or the peer stops taking events', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    const first = bench.session.sendDigits('customer', { digits: '1'.repeat(64), durationMs: 100 });
    bench.pace(3);
    const second = bench.session.sendDigits('customer', { digits: '2'.repeat(64), durationMs: 100 });
    expect(await first).toBe('stopped');
    bench.pace(3);
    await bench.connect({ customer: bench.customer.remote('PCMU', { telephoneEventPayloadType: null }) });
    bench.pace(1);
    expect(await second).toBe('stopped');
  });

  it('arrive as they were asked for, whatever they are', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: fc.constantFrom(...'0123456789*#ABCD'), minLength: 1, maxLength: 8 }),
        fc.integer({ min: 60, max: 400 }),
        async (digits, durationMs) => {
          bench.customer.heard.length = 0;
          const end = bench.session.sendDigits('customer', { digits, durationMs });
          bench.pace(8 * (20 + 5) + 1);
          expect(await end).toBe('played');
          const keyFrames = Math.round(durationMs / 20);
          await bench.customer.hears(digits.length * (keyFrames + 2 + GAP_FRAMES));
          expect(
            pressesHeardBy(bench.customer)
              .map(({ digit }) => digit)
              .join(''),
          ).toBe(digits);
        },
      ),
      { numRuns: 30 },
    );
  });
});
