import { describe, expect, it } from 'vitest';
import { DTMF_GAP_MS } from '../../media/dsp/dtmf-tones.ts';
import { levelDbov } from '../../media/dsp/level.ts';
import { toneFrames } from '../../media/dsp/tones.ts';
import { digitOfEvent, emptyTelephoneEvent, parseTelephoneEvent } from '../../media/rtp/telephone-event.ts';
import * as fc from '../properties.ts';
import { toneLevelDbov } from '../tone-level.ts';
import { Bench } from './relay-bench.ts';
import type { RtpPhone } from './rtp-phone.ts';

const frame = toneFrames('PCMU', { frequenciesHz: [1000], durationMs: 20 })[0]!;

const GAP_FRAMES = DTMF_GAP_MS / 20;

interface ReceivedPress {
  digit: string;
  durationMs: number;
  endPackets: number;
  atMs: number;
}

/** Key presses that a phone received, by their common timestamp (RFC 4733 section 2.5.1.2). */
function pressesReceivedBy(phone: RtpPhone): ReceivedPress[] {
  const presses = new Map<number, ReceivedPress>();
  const event = emptyTelephoneEvent();
  for (const { header, payload } of phone.received) {
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

describe('sending key presses', () => {
  it('sends telephone events with duration, three end packets and a gap after each', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    const end = bench.session.sendDigits('customer', { digits: '1d#', durationMs: 100 });
    bench.pace(30);
    expect(await end).toBe('played');
    await bench.customer.untilReceived(3 * (4 + 3 + GAP_FRAMES));
    const presses = pressesReceivedBy(bench.customer);
    expect(presses.map(({ digit }) => digit).join('')).toBe('1D#');
    expect(presses.every(({ durationMs, endPackets }) => durationMs === 100 && endPackets === 3)).toBe(true);
    expect(presses[1]!.atMs - presses[0]!.atMs).toBe(100 + DTMF_GAP_MS);
    expect(bench.agent.received).toEqual([]);
  });

  it('waits 0.5 s for w and 1 s for W, with silence that keeps the stream alive', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    const end = bench.session.sendDigits('customer', { digits: '1w2W3', durationMs: 100 });
    bench.pace(130);
    expect(await end).toBe('played');
    await bench.customer.untilReceived(3 * (7 + GAP_FRAMES) + 25 + 50);
    const timestamps = bench.customer.received.map(({ header }) => header.timestamp);
    // Some phones time out after seconds without packets.
    expect(Math.max(...timestamps.slice(1).map((timestamp, i) => timestamp - timestamps[i]!))).toBeLessThanOrEqual(800);
    const [one, two, three] = pressesReceivedBy(bench.customer) as [ReceivedPress, ReceivedPress, ReceivedPress];
    expect([two.atMs - one.atMs, three.atMs - two.atMs]).toEqual([180 + 500, 180 + 1000]);
  });

  it('replaces the audio of the other party in one continuous stream', async () => {
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
    await bench.customer.untilReceived(5 + 7 + 10);
    const { received } = bench.customer;
    const types = received.map(({ header }) => header.payloadType);
    expect(types.slice(5, 12)).toEqual(Array(7).fill(101));
    expect(new Set([...types.slice(0, 5), ...types.slice(12)])).toEqual(new Set([0]));
    for (let i = 1; i < received.length; i++) {
      expect((received[i]!.header.sequence - received[i - 1]!.header.sequence) & 0xffff).toBe(1);
    }
  });

  it('sends in-band tones to a peer without telephone events', async () => {
    await using bench = await Bench.open();
    await bench.connect({ customer: bench.customer.remote('PCMA', { telephoneEventPayloadType: null }) });
    const end = bench.session.sendDigits('customer', { digits: '5', durationMs: 200 });
    bench.pace(20);
    expect(await end).toBe('played');
    await bench.customer.untilReceived(14);
    const samples = bench.customer.receivedSamples('PCMA').subarray(0, 1600);
    for (const frequencyHz of [770, 1336]) expect(toneLevelDbov(samples, frequencyHz)).toBeGreaterThan(-20);
    for (const frequencyHz of [697, 852, 1209, 1477]) expect(toneLevelDbov(samples, frequencyHz)).toBeLessThan(-35);
    // Not reported as an announcement or a whisper.
    expect(bench.events).toEqual([]);
  });

  it('passes the keys of another party on as tones to a peer without telephone events', async () => {
    await using bench = await Bench.open();
    await bench.connect({ customer: bench.customer.remote('PCMU', { telephoneEventPayloadType: null }) });
    bench.setPath('bridged');
    bench.agent.press(bench.ports.agent, 5);
    bench.agent.press(bench.ports.agent, 9);
    await bench.settled('agent');
    for (let frame = 0; frame < 20; frame++) {
      await bench.settled('agent');
      bench.pace(1);
    }
    await bench.customer.untilReceived(18);
    expect(new Set(bench.customer.received.map(({ header }) => header.payloadType))).toEqual(new Set([0]));
    const samples = bench.customer.receivedSamples('PCMU');
    const level = (frequencyHz: number, fromMs: number) =>
      toneLevelDbov(samples.subarray(8 * fromMs, 8 * (fromMs + 100)), frequencyHz);
    for (const frequencyHz of [770, 1336]) expect(level(frequencyHz, 0)).toBeGreaterThan(-20);
    for (const frequencyHz of [852, 1477]) expect(level(frequencyHz, 180)).toBeGreaterThan(-20);
    expect(levelDbov(samples.subarray(8 * 110, 8 * 170))).toBeLessThan(-60);
    expect(bench.events.map((event) => event.type)).toEqual(['rtp.started', 'dtmf.pressed', 'dtmf.pressed']);
  });

  it('keeps a sound for a peer without telephone events, if the keys yield to it', async () => {
    await using bench = await Bench.open();
    await bench.connect({ customer: bench.customer.remote('PCMU', { telephoneEventPayloadType: null }) });
    const press = () => bench.session.sendDigits('customer', { digits: '5', durationMs: 100, yields: true });
    const sound = bench.session.play('customer', { samples: new Int16Array(1600), sampleRateHz: 16_000, over: true });
    expect(await press()).toBe('stopped');
    bench.pace(6);
    expect(await sound).toBe('played');
    const tone = press();
    bench.pace(20);
    expect(await tone).toBe('played');
  });

  it('fails while the party has the call on hold, and stops when it does so or the session closes', async () => {
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

  it('stops the tones for a peer without telephone events that puts the call on hold', async () => {
    await using bench = await Bench.open();
    const withoutEvents = { telephoneEventPayloadType: null };
    await bench.connect({ customer: bench.customer.remote('PCMU', withoutEvents) });
    const held = bench.session.sendDigits('customer', { digits: '12', durationMs: 100 });
    bench.pace(2);
    await bench.connect({ customer: bench.customer.remote('PCMU', { ...withoutEvents, direction: 'sendonly' }) });
    bench.pace(1);
    expect(await held).toBe('not-listening');
  });

  it('stops when other digits are sent or the peer drops telephone events', async () => {
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

  it('delivers any digits as requested', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    await fc.assert(
      fc.asyncProperty(
        fc.string({ unit: fc.constantFrom(...'0123456789*#ABCD'), minLength: 1, maxLength: 8 }),
        fc.integer({ min: 60, max: 400 }),
        async (digits, durationMs) => {
          bench.customer.received.length = 0;
          const end = bench.session.sendDigits('customer', { digits, durationMs });
          bench.pace(8 * (20 + 5) + 1);
          expect(await end).toBe('played');
          const keyFrames = Math.round(durationMs / 20);
          await bench.customer.untilReceived(digits.length * (keyFrames + 2 + GAP_FRAMES));
          expect(
            pressesReceivedBy(bench.customer)
              .map(({ digit }) => digit)
              .join(''),
          ).toBe(digits);
        },
      ),
      { numRuns: 30 },
    );
  });
});
