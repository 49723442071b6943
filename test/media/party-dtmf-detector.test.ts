import { describe, expect, it } from 'vitest';
import { talkRouting } from '../../actors/call-routing.ts';
import { OPEN_TALK } from '../../machines/call-control.ts';
import type { Codec } from '../../machines/events.ts';
import { dtmfTones } from '../../media/dsp/dtmf-tones.ts';
import { FRAME_SAMPLES } from '../../media/dsp/tones.ts';
import { PacketEncoder } from '../../media/relay/packet-encoder.ts';
import { PartyDtmfDetector } from '../../media/relay/party-dtmf-detector.ts';
import { decodedPacket } from './decoded-packet.ts';
import { Bench } from './relay-bench.ts';
import type { RtpPhone } from './rtp-phone.ts';

function framesOfDigits(digits: string, codec: Codec = 'PCMU', durationMs = 100): Uint8Array[] {
  const samples = dtmfTones(digits, durationMs);
  const encoder = new PacketEncoder(FRAME_SAMPLES);
  return Array.from({ length: samples.length / FRAME_SAMPLES }, (_, i) => {
    const frame = new Uint8Array(FRAME_SAMPLES);
    encoder.encode(codec, samples.subarray(i * FRAME_SAMPLES), FRAME_SAMPLES, frame, 0);
    return frame;
  });
}

function pressesIn(bench: Bench): string {
  return bench.events.flatMap((event) => (event.type === 'dtmf.pressed' ? [`${event.leg} ${event.digit}`] : [])).join();
}

async function sayAll(bench: Bench, leg: 'agent' | 'customer', frames: Uint8Array[], codec: Codec = 'PCMU') {
  for (const [index, frame] of frames.entries()) {
    bench.nowMs += 20;
    bench[leg].say(bench.ports[leg], codec, frame);
    if (index % 10 === 9) bench.session.tick();
  }
  await bench.settled(leg);
}

const withoutEvents = (phone: RtpPhone, codec: Codec = 'PCMU') =>
  phone.remote(codec, { telephoneEventPayloadType: null });

describe('in-band DTMF of a party', () => {
  it.each(['PCMU', 'PCMA', 'G722'] as const)(
    'produces key presses from a %s peer without telephone events',
    async (codec) => {
      await using bench = await Bench.open();
      await bench.connect({ customer: withoutEvents(bench.customer, codec) });
      bench.setPath('bridged');
      await sayAll(bench, 'customer', framesOfDigits('159D#0', codec), codec);
      expect(pressesIn(bench)).toBe([...'159D#0'].map((digit) => `customer ${digit}`).join());
      expect(bench.events.filter(({ type }) => type === 'dtmf.pressed')[0]).toMatchObject({
        by: 'tone',
        durationMs: expect.closeTo(100, -1),
      });
    },
  );

  it('counts for nothing from a peer that negotiated telephone events', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('bridged');
    await sayAll(bench, 'customer', framesOfDigits('12'));
    expect(pressesIn(bench)).toBe('');
    expect(bench.partyDump('customer').detectsTones).toBe(false);
  });

  it('counts for nothing before the bridge and after telephone events are renegotiated', async () => {
    await using bench = await Bench.open();
    await bench.connect({ customer: withoutEvents(bench.customer) });
    bench.setPath('early-media');
    await sayAll(bench, 'customer', framesOfDigits('1'));
    bench.setPath('bridged');
    await sayAll(bench, 'customer', framesOfDigits('2'));
    await bench.session.connectParty('customer', bench.customer.remote());
    await sayAll(bench, 'customer', framesOfDigits('3'));
    expect(pressesIn(bench)).toBe('customer 2');
  });

  it('produces key presses also from a peer on hold', async () => {
    await using bench = await Bench.open();
    await bench.connect({ customer: withoutEvents(bench.customer) });
    bench.session.setRouting(talkRouting({ ...OPEN_TALK, held: { agent: null, customer: 'music' } }));
    await sayAll(bench, 'customer', framesOfDigits('1'));
    expect(pressesIn(bench)).toBe('customer 1');
  });

  it('produces a key press when nothing follows', async () => {
    await using bench = await Bench.open();
    await bench.connect({ agent: withoutEvents(bench.agent) });
    bench.setPath('bridged');
    await sayAll(bench, 'agent', framesOfDigits('7').slice(0, 5));
    bench.session.tick();
    expect(pressesIn(bench)).toBe('');
    bench.nowMs += 250;
    bench.session.tick();
    expect(pressesIn(bench)).toBe('agent 7');
  });

  it('produces one key press when the packets of a held key are delayed', async () => {
    await using bench = await Bench.open();
    await bench.connect({ customer: withoutEvents(bench.customer) });
    bench.setPath('bridged');
    const frames = framesOfDigits('55', 'PCMU', 300);
    await sayAll(bench, 'customer', frames.slice(0, 8));
    bench.nowMs += 300;
    bench.session.tick();
    expect(pressesIn(bench)).toBe('customer 5');
    await sayAll(bench, 'customer', frames.slice(8));
    expect(pressesIn(bench)).toBe('customer 5,customer 5');
  });

  it('produces one whole key press when its thread stalls', async () => {
    await using bench = await Bench.open();
    await bench.connect({ customer: withoutEvents(bench.customer) });
    bench.setPath('bridged');
    const frames = framesOfDigits('5', 'PCMU', 600);
    await sayAll(bench, 'customer', frames.slice(0, 8));
    const readUntilMs = bench.nowMs;
    bench.nowMs += 300;
    bench.session.tick(readUntilMs);
    for (const frame of frames.slice(8)) bench.customer.say(bench.ports.customer, 'PCMU', frame);
    await bench.settled('customer');
    expect(pressesIn(bench)).toBe('customer 5');
    expect(bench.events.at(-1)).toMatchObject({ durationMs: expect.closeTo(600, -1) });
  });

  it('produces at most ten presses per tick', async () => {
    await using bench = await Bench.open();
    await bench.connect({ agent: withoutEvents(bench.agent) });
    bench.setPath('bridged');
    for (const frame of framesOfDigits('1'.repeat(15))) {
      bench.nowMs += 20;
      bench.agent.say(bench.ports.agent, 'PCMU', frame);
    }
    await bench.settled('agent');
    expect(pressesIn(bench).split(',')).toHaveLength(10);
  });
});

describe('DTMF packets', () => {
  interface Sent {
    sequence: number;
    timestamp: number;
    frame: Uint8Array;
    ssrc?: number;
  }

  function digitsOf(sent: readonly Sent[]): string {
    let digits = '';
    const detector = new PartyDtmfDetector((digit) => {
      digits += digit;
    });
    for (const { sequence, timestamp, frame, ssrc = 1 } of sent) {
      detector.addAudio(decodedPacket(frame, { ssrc, sequence, timestamp }), 0);
    }
    detector.end();
    return digits;
  }

  /** Sequence numbers and timestamps wrap within the digits. */
  const numbered = (frames: readonly Uint8Array[]): Sent[] =>
    frames.map((frame, i) => ({
      frame,
      sequence: (65_530 + i) & 0xffff,
      timestamp: (0xffff_fc00 + 160 * i) >>> 0,
    }));

  it('may be lost singly without a missing or extra press', () => {
    const sent = numbered(framesOfDigits('1122'));
    expect(digitsOf(sent)).toBe('1122');
    for (let lost = 1; lost < sent.length; lost++) expect(digitsOf(sent.toSpliced(lost, 1)), `${lost}`).toBe('1122');
  });

  it('may be lost up to six in a row within a tone without an extra press', () => {
    const sent = numbered(framesOfDigits('5'.repeat(3), 'PCMU', 300));
    for (const burst of [3, 4, 6]) {
      for (let lost = 2; lost + burst < 13; lost++) {
        expect(digitsOf(sent.toSpliced(19 + lost, burst)), `${burst} from ${lost}`).toBe('555');
      }
    }
  });

  it('keep two presses apart if the whole pause between them is lost', () => {
    const [first, second] = ['5', '5'].map((digit) => framesOfDigits(digit).slice(0, 5));
    const pause = [0, 1, 2, 3].map(() => new Uint8Array(FRAME_SAMPLES).fill(0xff));
    const sent = numbered([...first!, ...pause, ...second!]);
    expect(digitsOf(sent.toSpliced(5, 4))).toBe('55');
  });

  it('may arrive twice or swapped', () => {
    const sent = numbered(framesOfDigits('1122'));
    expect(digitsOf(sent.flatMap((packet) => [packet, packet]))).toBe('1122');
    for (let at = 1; at < sent.length; at++) {
      expect(digitsOf(sent.toSpliced(at - 1, 2, sent[at]!, sent[at - 1]!)), `${at}`).toBe('1122');
    }
  });

  it('keep two presses apart if the pause between them is not sent', () => {
    const sent = numbered(framesOfDigits('55')).filter((_, i) => i % 9 < 5);
    expect(digitsOf(sent.map((packet, i) => ({ ...packet, sequence: i })))).toBe('55');
  });

  it('keep two presses apart if the source changes or its timestamps jump', () => {
    const [first, second] = [numbered(framesOfDigits('5').slice(0, 5)), numbered(framesOfDigits('5').slice(0, 5))];
    expect(digitsOf([...first, ...second.map((packet) => ({ ...packet, ssrc: 2 }))])).toBe('55');
    const leaped = second.map((packet) => ({ ...packet, timestamp: (packet.timestamp + 1_000_000) >>> 0 }));
    expect(digitsOf([...first, ...leaped])).toBe('55');
    const back = second.map((packet) => ({ ...packet, timestamp: (packet.timestamp - 1_000_000) >>> 0 }));
    expect(digitsOf([...first, ...back])).toBe('55');
  });
});
