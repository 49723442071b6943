import { MessageChannel, type MessagePort, receiveMessageOnPort } from 'node:worker_threads';
import { describe, expect, it } from 'vitest';
import { CALL_PARTIES, routingOf } from '../../actors/call-routing.ts';
import type { MediaEvent } from '../../machines/events.ts';
import { ALAW_TO_LINEAR, encodeG711, type G711Codec, MULAW_TO_LINEAR } from '../../media/dsp/g711.ts';
import { toneLevelDbov } from '../../media/dsp/goertzel.ts';
import { toneFrames } from '../../media/dsp/tones.ts';
import { createMediaPlane } from '../../media/media-plane.workers.ts';
import { LegTap } from '../../media/relay/leg-tap.ts';
import { freePortRange, RtpPhone } from './rtp-phone.ts';

/** Samples of 20 ms, all of one value that both codecs carry nearly unchanged. */
const LOUD = 8_000;

describe('the tap of a leg', () => {
  it('posts what was said a tenth of a second at a time, a fifth of a second behind', () => {
    using tap = openTap();
    for (let frame = 0; frame < 20; frame += 1) tap.say(frame);
    // 380 ms have passed when the last frame is here.
    expect(tap.posts().map(({ length }) => length)).toEqual([800]);
    tap.nowMs += 120;
    tap.flush();
    expect(tap.posts().map(({ length }) => length)).toEqual([800, 800, 800]);
    expect(tap.stop()).toHaveLength(500 * 8);
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

  it('ends when its listener is ten seconds behind, says so once and posts nothing more', () => {
    using tap = openTap();
    for (let second = 1; second <= 60; second += 1) {
      tap.nowMs = second * 1000;
      tap.flush();
    }
    expect(tap.posts()).toHaveLength(100);
    expect(tap.overruns).toBe(1);
    tap.say(1);
    tap.stop();
    expect(tap.posts()).toHaveLength(100);
  });

  it('never ends for a listener that keeps up', async () => {
    using tap = openTap();
    let samples = 0;
    for (let second = 1; second <= 30; second += 1) {
      tap.nowMs = second * 1000;
      tap.flush();
      const taken = tap.take();
      samples += taken;
      tap.acknowledge(taken * 2);
      await tap.untilAcknowledged();
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

describe('the taps of a session', () => {
  it('post from the worker thread what each leg says, and all of it before they have stopped', async () => {
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
    await session.stopTap();
    const heard = joined(received(ears.agent.port2));
    expect(toneLevelDbov(heard, 500, 8000)).toBeGreaterThan(-40);
    const silence = joined(received(ears.customer.port2));
    expect(silence.length).toBeGreaterThan(0);
    expect(silence.every((sample) => sample === 0)).toBe(true);
    // Stopped and closed sessions have nothing to stop.
    await session.stopTap();
    await session.close();
    await session.stopTap();
    expect(events.filter(({ type }) => type === 'tap.overrun')).toEqual([]);
    await plane.close();
  });
});

/** A tap on a clock that the test sets; the listener reads what it posted when asked to. */
function openTap() {
  const { port1, port2 } = new MessageChannel();
  const state = { nowMs: 0, overruns: 0 };
  const onOverrun = () => {
    state.overruns += 1;
  };
  const tap = new LegTap({ port: port1, nowMs: 0, onOverrun });
  const kept: Int16Array[] = [];
  const posts = () => {
    kept.push(...received(port2));
    return kept;
  };
  const waiting = () => (tap.dump() as { bytesWaiting: number }).bytesWaiting;
  return Object.assign(state, {
    listener: port2 as MessagePort,
    posts,
    /** Frame number so many of a stream, which arrives at its time unless told otherwise. */
    say(frame: number, { codec = 'PCMU', atMs = frame * 20 }: { codec?: G711Codec; atMs?: number } = {}) {
      const datagram = new Uint8Array(160);
      encodeG711(codec, new Int16Array(160).fill(LOUD), datagram);
      state.nowMs = Math.max(state.nowMs, atMs);
      const packet = { ssrc: 1, timestamp: frame * 160, payloadOffset: 0, payloadBytes: 160 };
      tap.addAudio(codec, datagram, packet, LOUD * LOUD, state.nowMs);
    },
    flush: () => tap.flush(state.nowMs),
    /** Samples posted since the last time. */
    take: () => received(port2).reduce((sum, { length }) => sum + length, 0),
    acknowledge: (bytes: number) => port2.postMessage({ type: 'bytes.taken', bytes }),
    async untilAcknowledged() {
      while (waiting() > 0) await new Promise((resolve) => setImmediate(resolve));
    },
    async untilOver() {
      while (!(tap.dump() as { isOver: boolean }).isOver) await new Promise((resolve) => setImmediate(resolve));
    },
    stop() {
      tap.stop(state.nowMs);
      return joined(posts());
    },
    [Symbol.dispose]() {
      port1.close();
      port2.close();
    },
  });
}

function received(port: MessagePort): Int16Array[] {
  const posts: Int16Array[] = [];
  for (let post = receiveMessageOnPort(port); post !== undefined; post = receiveMessageOnPort(port)) {
    const bytes = post.message as Uint8Array<ArrayBuffer>;
    posts.push(new Int16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2));
  }
  return posts;
}

function joined(parts: Int16Array[]): Int16Array {
  const samples = new Int16Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    samples.set(part, at);
    at += part.length;
  }
  return samples;
}

function isLoud(samples: Int16Array): boolean {
  return samples.every((sample) => Math.abs(sample - LOUD) < LOUD / 10);
}
