import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, it, vi } from 'vitest';
import { CALL_PARTIES, RECORDING_CHANNELS, routingOf } from '../../actors/call-routing.ts';
import type { MediaEvent } from '../../machines/events.ts';
import { tone, toneFrames } from '../../media/dsp/tones.ts';
import type { MediaPlane, MediaSession } from '../../media/media-plane.ts';
import { createMediaPlane, type MediaPlaneOptions } from '../../media/media-plane.workers.ts';
import { PortPairs } from '../../media/port-pairs.ts';
import { readWav } from '../../media/wav.ts';
import { eventually } from '../eventually.ts';
import { nicenessOfThreads, raisedNiceness } from '../niceness.ts';
import { toneLevelDbov } from '../tone-level.ts';
import { freePortRange, RtpPhone } from './rtp-phone.ts';

class Plane {
  readonly plane: MediaPlane;
  readonly events: { sessionId: string; event: MediaEvent<string> }[] = [];
  readonly range: { min: number; max: number };
  readonly #waiting = new Set<() => void>();

  private constructor(range: { min: number; max: number }, options: Partial<MediaPlaneOptions>) {
    this.range = range;
    const ports = { rtpPortMin: range.min, rtpPortMax: range.max };
    this.plane = createMediaPlane({ workers: 1, rtpHost: '127.0.0.1', ...ports, ...options });
  }

  static async open(pairs: number, options: Partial<MediaPlaneOptions> = {}): Promise<Plane> {
    return new Plane(await freePortRange(pairs), options);
  }

  session(sessionId: string, signal = new AbortController().signal): Promise<MediaSession> {
    const onEvent = (event: MediaEvent<string>): void => {
      this.events.push({ sessionId, event });
      for (const resolve of this.#waiting) resolve();
      this.#waiting.clear();
    };
    return this.plane.openSession({ sessionId, parties: CALL_PARTIES, signal, onEvent });
  }

  async untilEvents(count: number): Promise<void> {
    while (this.events.length < count) await new Promise<void>((resolve) => this.#waiting.add(resolve));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.plane.close();
  }
}

/** Sends frames in real time, as a phone does. */
async function speak(phone: RtpPhone, port: number, frames: Uint8Array[]): Promise<void> {
  const startMs = performance.now();
  for (const [index, frame] of frames.entries()) {
    await delay(Math.max(0, startMs + index * 20 - performance.now()));
    phone.say(port, 'PCMU', frame);
  }
}

const tone500 = toneFrames('PCMU', { frequenciesHz: [500], durationMs: 600 });
const tone1000 = toneFrames('PCMU', { frequenciesHz: [1000], durationMs: 600 });

describe('media plane', () => {
  it('relays and records a call in a worker thread', async () => {
    await using bench = await Plane.open(4);
    await using agent = await RtpPhone.open();
    await using customer = await RtpPhone.open();
    const folder = await mkdtemp(join(tmpdir(), 'tandem-plane-'));
    const filePath = join(folder, 'call.wav');
    const session = await bench.session('call');
    const local = { agent: session.localOf('agent'), customer: session.localOf('customer') };
    expect([local.agent.rtpPort % 2, local.customer.rtpPort % 2, local.agent.host]).toEqual([0, 0, '127.0.0.1']);
    await session.connectParty('agent', agent.remote());
    await session.startRecording({ filePath, channels: RECORDING_CHANNELS });
    await expect(session.startRecording({ filePath, channels: RECORDING_CHANNELS })).rejects.toMatchObject({
      code: 'INTERNAL',
    });
    await session.setRouting(routingOf('ringback'));
    await agent.untilReceived(5);
    await session.connectParty('customer', customer.remote());
    await session.setRouting(routingOf('bridged'));
    await Promise.all([
      speak(agent, local.agent.rtpPort, tone500),
      speak(customer, local.customer.rtpPort, tone1000),
      customer.untilReceived(30),
    ]);
    agent.press(local.agent.rtpPort, 1);
    await bench.untilEvents(3);
    expect(bench.events.map(({ event }) => event.type)).toEqual(['rtp.started', 'rtp.started', 'dtmf.pressed']);
    expect(await session.quality()).toMatchObject({
      agent: { packets_lost: 0, codec: 'PCMU' },
      customer: { packets_received: 30 },
    });
    const summary = await session.stopRecording();
    const wav = await readWav(filePath);
    expect(summary).toEqual({ filePath, bytes: 44 + wav.samples[0]!.length * 4, durationMs: wav.durationMs });
    const [left, right] = wav.samples as [Int16Array, Int16Array];
    const start = left.findIndex((sample) => Math.abs(sample) > 500);
    expect(Math.abs(start - right.findIndex((sample) => Math.abs(sample) > 500))).toBeLessThan(800);
    expect(toneLevelDbov(left.subarray(start, start + 4800), 500)).toBeGreaterThan(-15);
    expect(toneLevelDbov(right.subarray(start, start + 4800), 1000)).toBeGreaterThan(-15);
    expect(toneLevelDbov(left.subarray(start, start + 4800), 1000)).toBeLessThan(-40);
    expect(await session.stopRecording()).toBeNull();
    await session.close();
    await rm(folder, { recursive: true });
  });

  it('plays samples in the worker, and stops when the session closes', async () => {
    await using bench = await Plane.open(4);
    await using agent = await RtpPhone.open();
    const session = await bench.session('call');
    await session.connectParty('agent', agent.remote());
    const samples = tone({ frequenciesHz: [700], durationMs: 300 });
    expect(await session.play('agent', { samples, over: false })).toBe('played');
    expect(samples).toHaveLength(0);
    await agent.untilReceived(15);
    expect(toneLevelDbov(agent.receivedSamples('PCMU'), 700)).toBeGreaterThan(-14);
    expect(bench.events).toEqual([{ sessionId: 'call', event: { type: 'playback.started', leg: 'agent' } }]);
    const end = session.play('agent', { samples: new Int16Array(240_000), over: false });
    await agent.untilReceived(17);
    await session.close();
    expect(await end).toBe('stopped');
    await expect(session.play('agent', { samples: new Int16Array(160), over: false })).rejects.toMatchObject({
      code: 'INTERNAL',
    });
  });

  it('adds a party that all hear, records it beside another, and frees its ports when it leaves', async () => {
    await using bench = await Plane.open(3);
    await using agent = await RtpPhone.open();
    await using guest = await RtpPhone.open();
    const folder = await mkdtemp(join(tmpdir(), 'tandem-plane-'));
    const filePath = join(folder, 'call.wav');
    const session = await bench.session('call');
    await session.connectParty('agent', agent.remote());
    await session.startRecording({ filePath, channels: RECORDING_CHANNELS });
    const { rtpPort } = await session.addParty('guest');
    expect(session.localOf('guest')).toEqual({ host: '127.0.0.1', rtpPort });
    await expect(session.addParty('guest')).rejects.toThrow(RangeError);
    await expect(session.addParty('another')).rejects.toMatchObject({ code: 'no_free_channel' });
    await session.connectParty('guest', guest.remote());
    const receives = { agent: [{ party: 'guest' }], guest: [{ party: 'agent' }] };
    await session.setRouting({ receives, watched: [], recordedBeside: { guest: 1 } });
    await Promise.all([
      speak(agent, session.localOf('agent').rtpPort, tone500),
      speak(guest, rtpPort, tone1000),
      agent.untilReceived(30),
      guest.untilReceived(30),
    ]);
    expect(toneLevelDbov(agent.receivedSamples('PCMU'), 1000)).toBeGreaterThan(-15);
    await session.setRouting({ receives: {}, watched: [] });
    expect(await session.removeParty('guest')).toMatchObject({ codec: 'PCMU', packets_received: 30 });
    expect(await session.removeParty('guest')).toBeNull();
    expect(() => session.localOf('guest')).toThrow(RangeError);
    const again = await session.addParty('guest-again');
    expect(again.rtpPort).toBe(rtpPort);
    await session.stopRecording();
    const [left, right] = (await readWav(filePath)).samples as [Int16Array, Int16Array];
    const start = right.findIndex((sample) => Math.abs(sample) > 500);
    expect(toneLevelDbov(right.subarray(start, start + 4000), 1000)).toBeGreaterThan(-15);
    expect(toneLevelDbov(left.subarray(start, start + 4000), 1000)).toBeLessThan(-40);
    await session.close();
    await rm(folder, { recursive: true });
    const parties = await bench.session('next');
    await parties.addParty('third');
  });

  it('rejects a session when all ports are in use, and accepts one after a close', async () => {
    await using bench = await Plane.open(4);
    const first = await bench.session('first');
    await bench.session('second');
    expect(bench.plane.capacity()).toMatchObject({ sessions: 2, maxSessions: 2, workers: 1 });
    await expect(bench.session('third')).rejects.toMatchObject({
      name: 'TandemError',
      code: 'no_free_channel',
      status: 429,
    });
    await first.close();
    await first.close();
    expect(bench.plane.capacity().sessions).toBe(1);
    await bench.session('third');
  });

  it('rejects a session while its worker is overloaded, and reports the load', async () => {
    const workerFile = new URL('./faulty-worker.ts', import.meta.url);
    await using bench = await Plane.open(22, { workerFile });
    const sessions: MediaSession[] = [];
    for (let i = 0; i < 10; i++) sessions.push(await bench.session(`call ${i}`));
    expect(bench.plane.capacity().load).toBeLessThan(1);
    const filePath = join(tmpdir(), 'overloaded.wav');
    await sessions[0]!.startRecording({ filePath, channels: RECORDING_CHANNELS });
    expect(bench.plane.capacity()).toMatchObject({ sessions: 10, maxSessions: 11, load: 1 });
    await expect(bench.session('one more')).rejects.toMatchObject({ code: 'no_free_channel', retryAfterS: 5 });
    expect(await bench.plane.dump()).toMatchObject({ load: 1, workers: [{ load: { utilization: 1 } }] });
    await sessions[0]!.close();
    await rm(filePath);
    await bench.session('one more');
  });

  it('skips ports in use elsewhere, and rejects a session if none is left', async () => {
    await using bench = await Plane.open(3);
    const blocker = createSocket('udp4');
    blocker.bind({ port: bench.range.min + 3, address: '127.0.0.1', exclusive: true });
    await once(blocker, 'listening');
    const session = await bench.session('one');
    expect(new Set([session.localOf('agent').rtpPort, session.localOf('customer').rtpPort])).toEqual(
      new Set([bench.range.min, bench.range.min + 4]),
    );
    await session.close();
    const second = createSocket('udp4');
    second.bind({ port: bench.range.min, address: '127.0.0.1', exclusive: true });
    await once(second, 'listening');
    await expect(bench.session('two')).rejects.toMatchObject({ code: 'no_free_channel' });
    blocker.close();
    second.close();
    await Promise.all([once(blocker, 'close'), once(second, 'close')]);
    await bench.session('three');
  });

  it('closes a session when its signal aborts, completes its recording and frees its ports', async () => {
    await using bench = await Plane.open(2);
    const folder = await mkdtemp(join(tmpdir(), 'tandem-plane-'));
    const filePath = join(folder, 'aborted.wav');
    const owner = new AbortController();
    const session = await bench.session('aborted', owner.signal);
    await session.startRecording({ filePath, channels: RECORDING_CHANNELS });
    owner.abort();
    await expect(session.setRouting(routingOf('bridged'))).rejects.toMatchObject({ code: 'INTERNAL' });
    expect(await session.stopRecording()).toMatchObject({ filePath });
    expect(await session.quality()).toEqual({ agent: null, customer: null });
    await session.close();
    expect((await readWav(filePath)).channels).toBe(2);
    await bench.session('next');
    await rm(folder, { recursive: true });
  });

  it('opens nothing for an owner that aborts before or during opening', async () => {
    await using bench = await Plane.open(2);
    await expect(bench.session('before', AbortSignal.abort(new RangeError('gone')))).rejects.toThrow('gone');
    const owner = new AbortController();
    const opening = bench.session('meanwhile', owner.signal);
    owner.abort(new RangeError('gone'));
    await expect(opening).rejects.toThrow('gone');
    expect(bench.plane.capacity().sessions).toBe(0);
    await bench.session('next');
  });

  it.runIf(process.platform === 'linux')('runs its workers before other programs, if the system permits', async () => {
    await using plane = await Plane.open(2);
    await plane.session('s');
    expect(new Set(nicenessOfThreads('media worker'))).toEqual(new Set([raisedNiceness()]));
  });

  it('reports a dead worker to its sessions, and restarts it on the same ports', async () => {
    const workerFile = new URL('./faulty-worker.ts', import.meta.url);
    await using bench = await Plane.open(4, { workerFile });
    const folder = await mkdtemp(join(tmpdir(), 'tandem-plane-'));
    const recorded = await bench.session('recorded');
    const other = await bench.session('other');
    await recorded.startRecording({ filePath: join(folder, 'call.wav'), channels: RECORDING_CHANNELS });
    await expect(
      other.startRecording({ filePath: join(folder, 'deadly.wav'), channels: RECORDING_CHANNELS }),
    ).rejects.toMatchObject({
      code: 'INTERNAL',
    });
    await bench.untilEvents(2);
    expect(bench.events).toEqual(
      ['recorded', 'other'].map((sessionId) => ({
        sessionId,
        event: { type: 'media.lost', detail: 'the media worker threw Error: as asked' },
      })),
    );
    expect(bench.plane.capacity().sessions).toBe(0);
    await expect(other.setRouting(routingOf('bridged'))).rejects.toMatchObject({ code: 'INTERNAL' });
    expect(await recorded.quality()).toEqual({ agent: null, customer: null });
    const summary = await recorded.stopRecording();
    expect(summary!.bytes).toBe(44 + (await readWav(summary!.filePath)).samples[0]!.length * 4);
    await Promise.all([recorded.close(), other.close()]);
    await expect.poll(() => bench.plane.capacity().workers).toBe(1);
    // The kernel frees the ports of the dead thread a moment after its end.
    const again = [await eventually(() => bench.session('a')), await eventually(() => bench.session('b'))];
    expect(again.map((session) => session.localOf('agent').rtpPort).every((port) => port >= bench.range.min)).toBe(
      true,
    );
    expect(bench.events).toHaveLength(2);
    await rm(folder, { recursive: true });
  });

  it('terminates a stuck worker, but not one that answers', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tandem-plane-'));
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    try {
      const workerFile = new URL('./faulty-worker.ts', import.meta.url);
      await using bench = await Plane.open(4, { workerFile });
      const session = await bench.session('stuck');
      for (let beat = 0; beat < 10; beat++) {
        vi.advanceTimersByTime(5000);
        await session.quality();
      }
      expect(bench.events).toEqual([]);
      const recording = session.startRecording({ filePath: join(folder, 'stuck.wav'), channels: RECORDING_CHANNELS });
      vi.advanceTimersByTime(20_000);
      await expect(recording).rejects.toMatchObject({ code: 'INTERNAL' });
      expect(bench.events).toEqual([
        { sessionId: 'stuck', event: { type: 'media.lost', detail: 'the media worker hung' } },
      ]);
    } finally {
      vi.useRealTimers();
      await rm(folder, { recursive: true });
    }
  });

  it('assigns a new session to the worker with the fewest', async () => {
    await using bench = await Plane.open(8, { workers: 2 });
    const sessions = await Promise.all(['a', 'b', 'c', 'd'].map((sessionId) => bench.session(sessionId)));
    const shares = async (): Promise<string[][]> => {
      const { workers } = (await bench.plane.dump()) as { workers: { sessions: { sessionId: string }[] }[] };
      return workers.map((worker) => worker.sessions.map(({ sessionId }) => sessionId));
    };
    expect(await shares()).toEqual([
      ['a', 'c'],
      ['b', 'd'],
    ]);
    await sessions[0]!.close();
    await bench.session('e');
    expect(await shares()).toEqual([
      ['c', 'e'],
      ['b', 'd'],
    ]);
  });

  it('reports a failed recording and continues the call', async () => {
    await using bench = await Plane.open(2);
    await using agent = await RtpPhone.open();
    const session = await bench.session('call');
    await session.connectParty('agent', agent.remote());
    await expect(
      session.startRecording({ filePath: '/nowhere/call.wav', channels: RECORDING_CHANNELS }),
    ).rejects.toMatchObject({
      code: 'STORAGE_UNAVAILABLE',
    });
    expect(bench.events).toEqual([{ sessionId: 'call', event: { type: 'recording.failed', detail: 'ENOENT' } }]);
    expect(await session.stopRecording()).toBeNull();
    await session.setRouting(routingOf('ringback'));
    await agent.untilReceived(2);
  });

  it('rejects an invalid media address', async () => {
    await using bench = await Plane.open(2);
    await using agent = await RtpPhone.open();
    const session = await bench.session('call');
    for (const host of ['', 'nowhere.invalid', '::1', '999.1.1.1']) {
      const connecting = session.connectParty('agent', agent.remote('PCMU', { host }));
      await expect(connecting).rejects.toMatchObject({ code: 'VALIDATION_FAILED' });
    }
  });

  it('offers the advertised address when bound to all addresses', async () => {
    await using bench = await Plane.open(2, { rtpHost: '0.0.0.0', advertisedHost: '192.0.2.1' });
    await using agent = await RtpPhone.open();
    const session = await bench.session('call');
    const { host, rtpPort } = session.localOf('customer');
    expect(host).toBe('192.0.2.1');
    const connecting = session.connectParty('agent', agent.remote('PCMU', { rtpPort }));
    await expect(connecting).rejects.toMatchObject({ code: 'VALIDATION_FAILED' });
    await session.connectParty('agent', agent.remote());
    await session.setRouting(routingOf('ringback'));
    await agent.untilReceived(2);
  });

  it('rejects sessions after close, and closes open ones', async () => {
    const bench = await Plane.open(2);
    const session = await bench.session('call');
    await bench.plane.close();
    await expect(bench.session('late')).rejects.toMatchObject({ code: 'SHUTTING_DOWN' });
    await expect(session.setRouting(routingOf('bridged'))).rejects.toMatchObject({ code: 'INTERNAL' });
    const socket = createSocket('udp4');
    socket.bind({ port: session.localOf('agent').rtpPort, address: '127.0.0.1', exclusive: true });
    await once(socket, 'listening');
    socket.close();
    expect(bench.plane.capacity()).toMatchObject({ sessions: 0, workers: 0 });
  });

  it('continues when an event listener throws', async () => {
    const warnings: string[] = [];
    const logger = { info: () => {}, warn: (_fields: object, message: string) => void warnings.push(message) };
    await using bench = await Plane.open(2, { logger });
    await using agent = await RtpPhone.open();
    const session = await bench.plane.openSession({
      sessionId: 'call',
      parties: CALL_PARTIES,
      signal: new AbortController().signal,
      onEvent: () => {
        throw new Error('listener');
      },
    });
    await session.connectParty('agent', agent.remote());
    agent.say(session.localOf('agent').rtpPort, 'PCMU', tone500[0]!);
    await expect.poll(() => warnings).toEqual(['media event listener threw']);
    expect(await session.quality()).toMatchObject({ agent: { packets_received: 1 } });
  });

  it('rejects invalid options', () => {
    const options = { workers: 1, rtpHost: '127.0.0.1', rtpPortMin: 40_000, rtpPortMax: 40_010 };
    expect(() => createMediaPlane({ ...options, workers: 0 })).toThrow(RangeError);
    expect(() => createMediaPlane({ ...options, rtpHost: 'localhost' })).toThrow('literal');
    expect(() => createMediaPlane({ ...options, rtpHost: '0.0.0.0' })).toThrow('advertised');
    expect(() => createMediaPlane({ ...options, rtpPortMax: 40_002 })).toThrow('two even/odd pairs');
  });
});

describe('RTP port pairs', () => {
  it('start even within the range, with the last returned pair at the end', () => {
    const pairs = new PortPairs({ min: 4001, max: 4008 });
    expect(pairs.size).toBe(3);
    expect([pairs.take(), pairs.take()]).toEqual([4002, 4004]);
    pairs.release(4004);
    pairs.release(4002);
    expect([pairs.take(), pairs.take(), pairs.take(), pairs.take()]).toEqual([4006, 4004, 4002, null]);
  });

  it('require a valid range with at least two pairs', () => {
    for (const range of [
      { min: 4001, max: 4004 },
      { min: 0, max: 100 },
      { min: 65_000, max: 70_000 },
      { min: 1.5, max: 100 },
    ]) {
      expect(() => new PortPairs(range)).toThrow(RangeError);
    }
  });
});
