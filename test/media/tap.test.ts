import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { CALL_PARTIES, routingOf } from '../../actors/call-routing.ts';
import type { Codec, MediaEvent } from '../../machines/events.ts';
import { ALAW_TO_LINEAR, encodeG711, MULAW_TO_LINEAR } from '../../media/codecs/g711.ts';
import { toneLevelDbov } from '../../media/dsp/goertzel.ts';
import { toneFrames } from '../../media/dsp/tones.ts';
import { createMediaPlane } from '../../media/media-plane.workers.ts';
import { LegTap } from '../../media/relay/leg-tap.ts';
import { PacketDecoder } from '../../media/relay/packet-decoder.ts';
import { PacketEncoder } from '../../media/relay/packet-encoder.ts';
import { SampleRing } from '../../media/sample-ring.ts';
import * as fc from '../properties.ts';
import { heardPacket } from './heard-packet.ts';
import { Bench } from './relay-bench.ts';
import { freePortRange, RtpPhone } from './rtp-phone.ts';

/** Samples of 20 ms, all of one value that both codecs carry nearly unchanged. */
const LOUD = 8_000;

describe('the tap of a leg', () => {
  it('writes what was said a tenth of a second at a time, a fifth of a second behind', () => {
    using tap = openTap();
    for (let frame = 0; frame < 20; frame += 1) tap.say(frame);
    // 380 ms have passed when the last frame is here.
    expect(tap.take()).toHaveLength(800);
    tap.nowMs += 120;
    tap.flush();
    expect(tap.take()).toHaveLength(1600);
    expect(tap.stop()).toHaveLength(200 * 8);
  });

  it('keeps the time of what was lost, of silence, and of packets that come in another order', () => {
    using tap = openTap();
    for (const frame of [0, 1, 4, 3]) tap.say(frame, { atMs: 20 * Math.max(4, frame) });
    tap.nowMs = 200;
    const heard = tap.stop();
    const loud = Array.from({ length: 10 }, (_, frame) => isLoud(heard.subarray(frame * 160, frame * 160 + 160)));
    // Frame 0 arrived at 80 ms, which anchors it there; 2 never came.
    expect(loud).toEqual([false, false, false, false, true, true, false, true, true, false]);
  });

  it('goes on when the codec changes in the middle', () => {
    using tap = openTap();
    for (let frame = 0; frame < 10; frame += 1) tap.say(frame, { codec: frame < 5 ? 'PCMU' : 'PCMA' });
    tap.nowMs = 200;
    const heard = tap.stop();
    const codes = new Uint8Array(1);
    encodeG711('PCMU', Int16Array.of(LOUD), codes);
    expect(heard.subarray(0, 800)).toEqual(new Int16Array(800).fill(MULAW_TO_LINEAR[codes[0]!]!));
    encodeG711('PCMA', Int16Array.of(LOUD), codes);
    expect(heard.subarray(800)).toEqual(new Int16Array(800).fill(ALAW_TO_LINEAR[codes[0]!]!));
  });

  it('writes 16 kHz for a party that speaks G.722, also when it changes to G.711', () => {
    using tap = openTap(16_000);
    for (let frame = 0; frame < 10; frame += 1) tap.say(frame, { codec: frame < 5 ? 'G722' : 'PCMA' });
    tap.nowMs = 200;
    const heard = tap.stop();
    expect(heard).toHaveLength(200 * 16);
    // Both codecs take a moment to begin.
    for (const part of [heard.subarray(400, 1600), heard.subarray(1800)]) expect(isLoud(part)).toBe(true);
  });

  it('ends when its listener is eight seconds behind, says so once and writes nothing more', () => {
    using tap = openTap();
    for (let second = 1; second <= 60; second += 1) {
      tap.nowMs = second * 1000;
      tap.flush();
    }
    expect(tap.overruns).toBe(1);
    tap.say(1);
    const heard = tap.stop();
    expect(heard.length).toBeGreaterThan(8 * 8000);
    expect(heard.length).toBeLessThan(8.3 * 8000);
  });

  it('never ends for a listener that keeps up', () => {
    using tap = openTap();
    let samples = 0;
    for (let second = 1; second <= 30; second += 1) {
      tap.nowMs = second * 1000;
      tap.flush();
      samples += tap.take().length;
    }
    expect(samples).toBe(30 * 8000 - 1600);
    expect(tap.overruns).toBe(0);
  });

  it('falls silent when its listener has gone', async () => {
    using tap = openTap();
    tap.listener.close();
    await tap.untilOver();
    tap.nowMs = 60_000;
    tap.flush();
    expect(tap.overruns).toBe(0);
  });
});

describe('a ring of samples', () => {
  it('gives back what was written, in order, over its end, from the same memory elsewhere', () => {
    const chunks = fc.array(
      fc.record({ write: fc.integer({ min: 0, max: 9000 }), read: fc.integer({ min: 0, max: 9000 }) }),
      {
        maxLength: 40,
      },
    );
    fc.assert(
      fc.property(chunks, (steps) => {
        const writer = new SampleRing(8000);
        const reader = new SampleRing(writer.memory);
        let written = 0;
        let read = 0;
        for (const step of steps) {
          const samples = Int16Array.from({ length: step.write }, (_, i) => written + i);
          const fits = written - read + step.write <= 65_536;
          expect(writer.write(samples)).toBe(fits);
          if (fits) written += step.write;
          const target = new Int16Array(step.read);
          const count = reader.read(target);
          expect(count).toBe(Math.min(step.read, written - read));
          for (let i = 0; i < count; i += 97) expect(target[i]).toBe(((read + i) << 16) >> 16);
          read += count;
          expect(writer.waiting).toBe(written - read);
        }
      }),
    );
  });

  it('rejects memory that is not of a ring', () => {
    expect(() => new SampleRing(new SharedArrayBuffer(64))).toThrow(RangeError);
  });
});

describe('the taps of a session', () => {
  it('hand over from the worker thread what each leg says, and all of it before they have stopped', async () => {
    const { min, max } = await freePortRange(2);
    const events: MediaEvent<string>[] = [];
    const plane = createMediaPlane({ workers: 1, rtpHost: '127.0.0.1', rtpPortMin: min, rtpPortMax: max });
    await using agent = await RtpPhone.open();
    await using customer = await RtpPhone.open();
    const session = await plane.openSession({
      sessionId: 'call',
      parties: CALL_PARTIES,
      signal: new AbortController().signal,
      onEvent: (event) => events.push(event),
    });
    await session.connectParty('agent', agent.remote());
    await session.connectParty('customer', customer.remote());
    await session.setRouting(routingOf('bridged'));
    const ears = { agent: new MessageChannel(), customer: new MessageChannel() };
    const ports = { agent: ears.agent.port1, customer: ears.customer.port1 };
    await session.startTap(ports);
    const more = { agent: new MessageChannel().port1, customer: new MessageChannel().port1 };
    await expect(session.startTap(more)).rejects.toMatchObject({ code: 'INTERNAL' });
    for (const frame of toneFrames('PCMU', { frequenciesHz: [500], durationMs: 300 })) {
      agent.say(session.localOf('agent').rtpPort, 'PCMU', frame);
    }
    await customer.hears(15);
    const stopTaps = async () => {
      for (const party of ['agent', 'customer']) await session.stopTap(party);
    };
    await stopTaps();
    const heard = received(ears.agent.port2);
    expect(toneLevelDbov(heard, 500, 8000)).toBeGreaterThan(-40);
    const silence = received(ears.customer.port2);
    expect(silence.length).toBeGreaterThan(0);
    expect(silence.every((sample) => sample === 0)).toBe(true);
    // Stopped and closed sessions have nothing to stop.
    await stopTaps();
    await session.close();
    await stopTaps();
    expect(events.filter(({ type }) => type === 'tap.overrun')).toEqual([]);
    await plane.close();
  });

  it('get silence of a party whose tap is muted, and what it says again afterwards', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    const { port1, port2 } = new MessageChannel();
    const routing = { hears: { customer: [{ party: 'agent' }] }, watched: [] };
    bench.session.setRouting({ ...routing, tapMuted: ['agent'] });
    bench.session.startTap({ agent: port1 });
    const say = async () => {
      for (const frame of toneFrames('PCMU', { frequenciesHz: [500], durationMs: 400 })) {
        bench.agent.say(bench.ports.agent, 'PCMU', frame);
        await bench.settled('agent');
        bench.nowMs += 20;
      }
    };
    await say();
    bench.session.setRouting(routing);
    await say();
    bench.session.stopTap('agent');
    const heard = received(port2);
    expect(heard.subarray(0, 3000).every((sample) => sample === 0)).toBe(true);
    expect(toneLevelDbov(heard.subarray(-1600), 500, 8000)).toBeGreaterThan(-40);
    expect(() => bench.session.setRouting({ ...routing, tapMuted: ['nobody'] })).toThrow(RangeError);
  });
});

/** A tap on a clock that the test sets; the listener reads what it wrote when asked to. */
function openTap(sampleRateHz: 8000 | 16_000 = 8000) {
  const { port1, port2 } = new MessageChannel();
  const state = { nowMs: 0, overruns: 0 };
  const encoder = new PacketEncoder(160);
  const decoder = new PacketDecoder(160);
  const onOverrun = () => {
    state.overruns += 1;
  };
  const tap = new LegTap({ port: port1, sampleRateHz, nowMs: 0, onOverrun });
  const ring = ringOf(port2);
  return Object.assign(state, {
    listener: port2 as MessagePort,
    /** Frame number so many of a stream, which arrives at its time unless told otherwise. */
    say(frame: number, { codec = 'PCMU', atMs = frame * 20 }: { codec?: Codec; atMs?: number } = {}) {
      const datagram = new Uint8Array(160);
      encoder.encode(codec, new Int16Array(160).fill(LOUD), 160, datagram, 0);
      state.nowMs = Math.max(state.nowMs, atMs);
      tap.addAudio(heardPacket(datagram, { codec, sequence: frame, timestamp: frame * 160, decoder }), state.nowMs);
    },
    flush: () => tap.flush(state.nowMs),
    /** Samples written since the last time. */
    take: () => readAll(ring),
    async untilOver() {
      while (!(tap.dump() as { isOver: boolean }).isOver) await new Promise((resolve) => setImmediate(resolve));
    },
    stop() {
      tap.stop(state.nowMs);
      return readAll(ring);
    },
    [Symbol.dispose]() {
      port1.close();
      port2.close();
    },
  });
}

function ringOf(port: MessagePort): SampleRing {
  const posted = receiveMessageOnPort(port);
  if (posted === undefined) throw new Error('the tap has posted nothing');
  return new SampleRing(posted.message as SharedArrayBuffer);
}

function received(port: MessagePort): Int16Array {
  return readAll(ringOf(port));
}

function readAll(ring: SampleRing): Int16Array {
  const samples = new Int16Array(ring.waiting);
  ring.read(samples);
  return samples;
}

function isLoud(samples: Int16Array): boolean {
  return samples.every((sample) => Math.abs(sample - LOUD) < LOUD / 10);
}
