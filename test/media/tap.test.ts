import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { CALL_PARTIES, routingOf } from '../../actors/call-routing.ts';
import type { Codec, MediaEvent } from '../../machines/events.ts';
import { ALAW_TO_LINEAR, encodeG711, MULAW_TO_LINEAR } from '../../media/codecs/g711.ts';
import { toneFrames } from '../../media/dsp/tones.ts';
import { createMediaPlane } from '../../media/media-plane.workers.ts';
import { LegTap } from '../../media/relay/leg-tap.ts';
import { PacketDecoder } from '../../media/relay/packet-decoder.ts';
import { PacketEncoder } from '../../media/relay/packet-encoder.ts';
import { SampleRing } from '../../media/sample-ring.ts';
import * as fc from '../properties.ts';
import { toneLevelDbov } from '../tone-level.ts';
import { decodedPacket } from './decoded-packet.ts';
import { Bench } from './relay-bench.ts';
import { freePortRange, RtpPhone } from './rtp-phone.ts';

/** 20 ms of one value that both codecs preserve. */
const LOUD = 8_000;

describe('leg tap', () => {
  it('writes 100 ms of audio at a time, with 200 ms delay', () => {
    using tap = openTap();
    for (let frame = 0; frame < 20; frame += 1) tap.say(frame);
    // 380 ms have passed when the last frame arrives.
    expect(tap.take()).toHaveLength(800);
    tap.nowMs += 120;
    tap.flush();
    expect(tap.take()).toHaveLength(1600);
    expect(tap.stop()).toHaveLength(200 * 8);
  });

  it('keeps the timing of losses, silence and reordered packets', () => {
    using tap = openTap();
    for (const frame of [0, 1, 4, 3]) tap.say(frame, { atMs: 20 * Math.max(4, frame) });
    tap.nowMs = 200;
    const audio = tap.stop();
    const loud = Array.from({ length: 10 }, (_, frame) => isLoud(audio.subarray(frame * 160, frame * 160 + 160)));
    // Frame 0 arrived at 80 ms, which sets the reference; frame 2 never came.
    expect(loud).toEqual([false, false, false, false, true, true, false, true, true, false]);
  });

  it.each([180, 250, 290, 400])('loses at most 600 ms of audio when the delay grows by %i ms', (growthMs) => {
    using tap = openTap();
    for (let frame = 0; frame < 350; frame += 1) {
      tap.say(frame, { atMs: 20 * frame + (frame < 50 ? 0 : growthMs) });
    }
    expect(tap.stop().filter((sample) => sample !== 0).length / 8).toBeGreaterThan(7000 - 600);
  });

  it('writes all audio that its thread reads at once after a stall', () => {
    using tap = openTap();
    for (let frame = 0; frame < 150; frame += 1) {
      tap.say(frame, { atMs: frame < 50 || frame >= 100 ? 20 * frame : 2000 });
    }
    expect(tap.stop().filter((sample) => sample !== 0).length / 8).toBe(3000 - 20);
  });

  it('continues when the codec changes', () => {
    using tap = openTap();
    for (let frame = 0; frame < 10; frame += 1) tap.say(frame, { codec: frame < 5 ? 'PCMU' : 'PCMA' });
    tap.nowMs = 200;
    const audio = tap.stop();
    const codes = new Uint8Array(1);
    encodeG711('PCMU', Int16Array.of(LOUD), codes);
    expect(audio.subarray(0, 800)).toEqual(new Int16Array(800).fill(MULAW_TO_LINEAR[codes[0]!]!));
    encodeG711('PCMA', Int16Array.of(LOUD), codes);
    expect(audio.subarray(800)).toEqual(new Int16Array(800).fill(ALAW_TO_LINEAR[codes[0]!]!));
  });

  it('writes 16 kHz for G.722, even after a change to G.711', () => {
    using tap = openTap(16_000);
    for (let frame = 0; frame < 10; frame += 1) tap.say(frame, { codec: frame < 5 ? 'G722' : 'PCMA' });
    tap.nowMs = 200;
    const audio = tap.stop();
    expect(audio).toHaveLength(200 * 16);
    // Both codecs start with a transient.
    for (const part of [audio.subarray(400, 1600), audio.subarray(1800)]) expect(isLoud(part)).toBe(true);
  });

  it('ends when its reader lags by eight seconds, and reports it once', () => {
    using tap = openTap();
    for (let second = 1; second <= 60; second += 1) {
      tap.nowMs = second * 1000;
      tap.flush();
    }
    expect(tap.overruns).toBe(1);
    tap.say(1);
    const audio = tap.stop();
    expect(audio.length).toBeGreaterThan(8 * 8000);
    expect(audio.length).toBeLessThan(8.3 * 8000);
  });

  it('never ends for a fast reader', () => {
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

  it('stops when its reader disappears', async () => {
    using tap = openTap();
    tap.listener.close();
    await tap.untilOver();
    tap.nowMs = 60_000;
    tap.flush();
    expect(tap.overruns).toBe(0);
  });
});

describe('sample ring', () => {
  it('returns samples in order across its end, through shared memory', () => {
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

  it('rejects foreign memory', () => {
    expect(() => new SampleRing(new SharedArrayBuffer(64))).toThrow(RangeError);
  });
});

describe('session taps', () => {
  it('transfer all audio of each leg from the worker thread before they stop', async () => {
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
    const taps = { agent: new MessageChannel(), customer: new MessageChannel() };
    const ports = { agent: taps.agent.port1, customer: taps.customer.port1 };
    await session.startTap(ports);
    const more = { agent: new MessageChannel().port1, customer: new MessageChannel().port1 };
    await expect(session.startTap(more)).rejects.toMatchObject({ code: 'INTERNAL' });
    for (const frame of toneFrames('PCMU', { frequenciesHz: [500], durationMs: 300 })) {
      agent.say(session.localOf('agent').rtpPort, 'PCMU', frame);
    }
    await customer.untilReceived(15);
    const stopTaps = async () => {
      for (const party of ['agent', 'customer']) await session.stopTap(party);
    };
    await stopTaps();
    const audio = received(taps.agent.port2);
    expect(toneLevelDbov(audio, 500, 8000)).toBeGreaterThan(-40);
    const silence = received(taps.customer.port2);
    expect(silence.length).toBeGreaterThan(0);
    expect(silence.every((sample) => sample === 0)).toBe(true);
    await stopTaps();
    await session.close();
    await stopTaps();
    expect(events.filter(({ type }) => type === 'tap.overrun')).toEqual([]);
    await plane.close();
  });

  it('contain what their thread reads after the tick that follows a stall', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    const { port1, port2 } = new MessageChannel();
    bench.setPath('bridged');
    bench.session.startTap({ agent: port1 });
    const startedAtMs = bench.nowMs;
    const frames = toneFrames('PCMU', { frequenciesHz: [500], durationMs: 1000 });
    for (const [index, frame] of frames.entries()) {
      if (index === 10) bench.session.tick();
      if (index === 20) {
        // The thread stalls from 400 to 1000 ms.
        bench.nowMs = startedAtMs + 1000;
        bench.session.tick(startedAtMs + 400);
      }
      bench.agent.say(bench.ports.agent, 'PCMU', frame);
      await bench.settled('agent');
      if (index < 20) bench.nowMs += 20;
    }
    bench.session.stopTap('agent');
    const audio = received(port2);
    for (let at = 0; at < 7840; at += 160) {
      expect(toneLevelDbov(audio.subarray(at, at + 160), 500, 8000)).toBeGreaterThan(-40);
    }
  });

  it('contain silence while a tap is muted, and audio afterwards', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    const { port1, port2 } = new MessageChannel();
    const routing = { receives: { customer: [{ party: 'agent' }] }, watched: [] };
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
    const audio = received(port2);
    expect(audio.subarray(0, 3000).every((sample) => sample === 0)).toBe(true);
    expect(toneLevelDbov(audio.subarray(-1600), 500, 8000)).toBeGreaterThan(-40);
    expect(() => bench.session.setRouting({ ...routing, tapMuted: ['nobody'] })).toThrow(RangeError);
  });
});

/** A tap on a fake clock whose output is read on request. */
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
    /** Sends frame number `frame`, on time by default. */
    say(frame: number, { codec = 'PCMU', atMs = frame * 20 }: { codec?: Codec; atMs?: number } = {}) {
      const datagram = new Uint8Array(160);
      encoder.encode(codec, new Int16Array(160).fill(LOUD), 160, datagram, 0);
      state.nowMs = Math.max(state.nowMs, atMs);
      tap.addAudio(decodedPacket(datagram, { codec, sequence: frame, timestamp: frame * 160, decoder }), state.nowMs);
    },
    flush: () => tap.flush(state.nowMs),
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
