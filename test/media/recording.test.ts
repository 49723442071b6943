import { mkdtemp, readlink, rm, stat, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { levelDbov } from '../../media/dsp/level.ts';
import { framesOf, tone } from '../../media/dsp/tones.ts';
import { SessionRecorder } from '../../media/recording/session-recorder.ts';
import { readWav } from '../../media/wav.ts';
import * as fc from '../properties.ts';
import { toneLevelDbov } from '../tone-level.ts';
import { decodedPacket } from './decoded-packet.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tandem-recording-'));
});
afterEach(() => rm(folder, { recursive: true }));

class Session {
  readonly failures: string[] = [];
  readonly recorder: SessionRecorder;
  nowMs = 50_000;
  #flushedAtMs = 50_000;

  constructor(filePath = join(folder, 'call.wav'), sampleRateHz: 8000 | 16_000 = 8000) {
    const onFailed = (detail: string): void => void this.failures.push(detail);
    this.recorder = new SessionRecorder({ filePath, sampleRateHz, nowMs: this.nowMs, onFailed });
  }

  advance(ms: number): void {
    this.nowMs += ms;
    while (this.nowMs - this.#flushedAtMs >= 250) {
      this.#flushedAtMs += 250;
      this.recorder.flush(this.#flushedAtMs);
    }
  }

  hear(channel: 0 | 1, timestamp: number, octets: Uint8Array, ssrc = 1): void {
    this.recorder.addAudio(channel, decodedPacket(octets, { ssrc, timestamp: timestamp >>> 0 }), this.nowMs);
  }

  /** The simulated time passes instantly, but the disk needs real time. */
  async diskCaughtUp(): Promise<void> {
    const recordedBytes = (this.#flushedAtMs - 50_000) * 32;
    for (;;) {
      const { size } = await stat(this.recorder.filePath);
      if (size > recordedBytes - 80_000) return;
    }
  }

  async finish(): Promise<[Int16Array, Int16Array]> {
    const summary = await this.recorder.stop(this.nowMs);
    const wav = await readWav(this.recorder.filePath);
    expect(wav).toMatchObject({ channels: 2, sampleRateHz: 8000, durationMs: summary!.durationMs });
    return wav.samples as [Int16Array, Int16Array];
  }
}

const low = framesOf('PCMU', tone({ frequenciesHz: [500], durationMs: 1000 }));
const high = framesOf('PCMU', tone({ frequenciesHz: [1000], durationMs: 1000 }));
const isSilent = (samples: Int16Array): boolean => samples.every((sample) => sample === 0);

function extent(samples: Int16Array): [number, number] {
  return [
    samples.findIndex((sample) => Math.abs(sample) > 50),
    samples.findLastIndex((sample) => Math.abs(sample) > 50),
  ];
}

describe('call recording', () => {
  it('places the agent left and the customer right, in time, for its whole duration', async () => {
    const session = new Session();
    await session.recorder.open();
    session.advance(500);
    for (let i = 0; i < 100; i++) {
      if (i < 50) session.hear(0, 7000 + i * 160, low[i]!);
      if (i >= 25 && i < 75) session.hear(1, 0xffffff00 + i * 160, high[i - 25]!);
      session.advance(20);
    }
    const [agent, customer] = await session.finish();
    expect(agent.length).toBe(2.5 * 8000);
    expect(toneLevelDbov(agent.subarray(4000, 12_000), 500)).toBeGreaterThan(-14);
    expect(toneLevelDbov(customer.subarray(8000, 16_000), 1000)).toBeGreaterThan(-14);
    expect(isSilent(agent.subarray(0, 4000)) && isSilent(agent.subarray(12_000))).toBe(true);
    expect(isSilent(customer.subarray(0, 8000)) && isSilent(customer.subarray(16_000))).toBe(true);
  });

  it('adds a further party to the other channel', async () => {
    const session = new Session();
    await session.recorder.open();
    for (let i = 0; i < 100; i++) {
      const packet = decodedPacket(low[i % 50]!, { ssrc: 3, timestamp: i * 160 });
      session.recorder.addVoice('third', i < 50 ? 1 : 0, packet, session.nowMs);
      session.advance(20);
    }
    const [agent, customer] = await session.finish();
    expect(extent(customer)[1]).toBeLessThan(8000);
    expect(extent(agent)[0]).toBeGreaterThanOrEqual(8000);
    expect(toneLevelDbov(agent.subarray(8000), 500)).toBeGreaterThan(-14);
    expect(toneLevelDbov(customer.subarray(0, 8000), 500)).toBeGreaterThan(-14);
  });

  it('contains silence for losses and pauses, and aligns what follows', async () => {
    const session = new Session();
    await session.recorder.open();
    for (let i = 0; i < 150; i++) {
      const isLost = i === 10 || i === 11;
      const isPause = i >= 50 && i < 100;
      if (!isLost && !isPause) session.hear(0, i * 160, low[i % 50]!);
      session.advance(20);
    }
    const [agent] = await session.finish();
    expect(isSilent(agent.subarray(1600, 1920))).toBe(true);
    expect(isSilent(agent.subarray(8000, 16_000))).toBe(true);
    expect(levelDbov(agent.subarray(1920, 2080))).toBeGreaterThan(-16);
    expect(levelDbov(agent.subarray(16_000, 16_160))).toBeGreaterThan(-16);
  });

  it('places jittered and reordered packets by their timestamps', async () => {
    const samples = tone({ frequenciesHz: [300, 510], durationMs: 1000 });
    const frames = framesOf('PCMU', samples);
    const arrivals = fc.array(fc.integer({ min: 0, max: 200 }), { minLength: 50, maxLength: 50 });
    let run = 0;
    await fc.assert(
      fc.asyncProperty(arrivals, async (delaysMs) => {
        const session = new Session(join(folder, `${run++}.wav`));
        await session.recorder.open();
        session.hear(0, 0, frames[0]!);
        const order = delaysMs.map((delayMs, i) => ({ i, atMs: i * 20 + (i === 0 ? 0 : delayMs) })).slice(1);
        for (const { i, atMs } of order.sort((a, b) => a.atMs - b.atMs)) {
          session.advance(50_000 + atMs - session.nowMs);
          session.hear(0, i * 160, frames[i]!);
        }
        session.advance(500);
        const [agent] = await session.finish();
        const expected = new Session(join(folder, 'steady.wav'));
        await expected.recorder.open();
        frames.forEach((frame, i) => {
          expected.hear(0, i * 160, frame);
          expected.advance(20);
        });
        const [steady] = await expected.finish();
        expect(agent.slice(0, 8000)).toEqual(steady.slice(0, 8000));
      }),
      { numRuns: 10 },
    );
  });

  it('stays aligned when the clock of the party drifts by 0.1 % for ten minutes', async () => {
    const session = new Session();
    await session.recorder.open();
    const click = framesOf('PCMU', tone({ frequenciesHz: [1000], durationMs: 20, levelDbfs: -3 }))[0]!;
    const quiet = new Uint8Array(160).fill(0xff);
    const frames = 30_000;
    for (let i = 0; i < frames; i++) {
      const isLast = i === frames - 1;
      const packet = decodedPacket(isLast ? click : quiet, { timestamp: Math.round(i * 160 * 1.001) });
      session.recorder.addAudio(0, packet, session.nowMs);
      session.advance(20);
      if (i % 500 === 499) await session.diskCaughtUp();
    }
    const [agent] = await session.finish();
    expect(agent.length).toBe(frames * 160);
    const [start] = extent(agent);
    expect(Math.abs(start - (frames - 1) * 160)).toBeLessThan(80 * 8);
  });

  it('follows timestamp jumps and SSRC changes without growing', async () => {
    const session = new Session();
    await session.recorder.open();
    for (let i = 0; i < 100; i++) {
      if (i === 25) session.hear(0, 0x7000_0000, low[0]!);
      const timestamp = i < 50 ? i * 160 : 0x9000_0000 + i * 160;
      session.hear(0, timestamp, low[i % 50]!, i < 75 ? 1 : 2);
      session.advance(20);
    }
    const [agent] = await session.finish();
    expect(agent.length).toBe(2 * 8000);
    for (let at = 0; at < agent.length; at += 800) expect(levelDbov(agent.subarray(at, at + 800))).toBeGreaterThan(-16);
  });

  it('lasts as long as the clock for any hostile timestamps', async () => {
    let run = 0;
    const packet = fc.record({
      ssrc: fc.nat(2),
      timestamp: fc.oneof(fc.nat(0xffffffff), fc.nat(20_000)),
      bytes: fc.nat(1440),
      afterMs: fc.oneof(fc.constant(20), fc.nat(2000)),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(packet, { maxLength: 60 }), async (packets) => {
        const session = new Session(join(folder, `${run++}.wav`));
        await session.recorder.open();
        for (const { ssrc, timestamp, bytes, afterMs } of packets) {
          session.hear((ssrc & 1) as 0 | 1, timestamp, new Uint8Array(bytes), ssrc);
          session.advance(afterMs);
          await new Promise((resolve) => setImmediate(resolve));
        }
        const [agent] = await session.finish();
        expect(agent.length).toBe((session.nowMs - 50_000) * 8);
      }),
      { numRuns: 30 },
    );
  });

  it('loses nothing when the thread stalls for three seconds', async () => {
    const session = new Session();
    await session.recorder.open();
    const speak = (from: number, to: number): void => {
      for (let i = from; i < to; i++) session.hear(0, i * 160, low[i % 50]!);
    };
    for (let i = 0; i < 50; i++) {
      speak(i, i + 1);
      session.advance(20);
    }
    // No flush and no packet for three seconds, then the socket buffer at once.
    session.nowMs += 3000;
    speak(50, 200);
    session.advance(600);
    const [agent] = await session.finish();
    for (let at = 0; at < 4 * 8000; at += 1600) expect(levelDbov(agent.subarray(at, at + 1600))).toBeGreaterThan(-16);
  });

  it.each([0, 120, 240, 360])(
    'loses nothing when packets arrive at once after 1.3 seconds and %i ms',
    async (phaseMs) => {
      const stalledAtMs = 3000 + phaseMs;
      const resumedAtMs = stalledAtMs + 1300;
      const arrivalMs = (sentMs: number): number =>
        sentMs >= stalledAtMs && sentMs < resumedAtMs ? resumedAtMs : sentMs;
      expect(await silentMs(300, arrivalMs)).toBe(0);
    },
  );

  it('loses little while the delay swings by a second in eight', async () => {
    const arrivalMs = (sentMs: number): number =>
      sentMs + Math.round(500 - 500 * Math.cos((2 * Math.PI * sentMs) / 8000));
    expect(await silentMs(2000, arrivalMs)).toBeLessThan(500);
  });

  /** Silence in the recording of a party who speaks without a pause. */
  async function silentMs(frames: number, arrivalMs: (sentMs: number) => number): Promise<number> {
    const session = new Session();
    await session.recorder.open();
    const arrivals = Array.from({ length: frames }, (_, i) => ({ i, atMs: arrivalMs(i * 20) }));
    for (const { i, atMs } of arrivals.sort((a, b) => a.atMs - b.atMs)) {
      session.advance(50_000 + atMs - session.nowMs);
      session.hear(0, i * 160, low[i % 50]!);
      if (i % 500 === 499) await session.diskCaughtUp();
    }
    session.advance(20);
    const [agent] = await session.finish();
    let silent = 0;
    for (let at = 0; at < agent.length; at += 80) if (isSilent(agent.subarray(at, at + 80))) silent += 10;
    return silent;
  }

  it('contains nothing of recordings that were written before it', async () => {
    const before = new Session(join(folder, 'before.wav'));
    await before.recorder.open();
    for (let i = 0; i < 200; i++) {
      for (const channel of [0, 1] as const) before.hear(channel, i * 160, low[i % 50]!);
      before.advance(20);
    }
    await before.finish();
    const session = new Session();
    await session.recorder.open();
    session.advance(4000);
    const [agent, customer] = await session.finish();
    expect(isSilent(agent) && isSilent(customer)).toBe(true);
  });

  it('fails once when the file cannot be created, and keeps accepting audio', async () => {
    const session = new Session(join(folder, 'missing', 'call.wav'));
    await expect(session.recorder.open()).rejects.toMatchObject({ code: 'ENOENT' });
    session.hear(0, 0, low[0]!);
    session.advance(5000);
    expect(await session.recorder.stop(session.nowMs)).toBeNull();
    expect(session.failures).toEqual(['ENOENT']);
  });

  it('fails once when the disk is full, and leaves what is not a file', async () => {
    const link = join(folder, 'full.wav');
    await symlink('/dev/full', link);
    const session = new Session(link);
    await expect(session.recorder.open()).rejects.toMatchObject({ code: 'ENOSPC' });
    session.advance(5000);
    expect(await session.recorder.stop(session.nowMs)).toBeNull();
    expect(session.failures).toEqual(['ENOSPC']);
    expect(await readlink(link)).toBe('/dev/full');
  });

  it('fails before a blocked disk exhausts memory', async () => {
    const session = new Session();
    session.advance(120_000);
    expect(session.failures).toEqual(['the disk is too slow']);
  });

  it('remains complete when stopped while its file opens', async () => {
    const session = new Session();
    const opening = session.recorder.open();
    session.hear(1, 0, low[0]!);
    session.advance(1000);
    const stopping = session.finish();
    await opening;
    const [, customer] = await stopping;
    expect(extent(customer)[1]).toBeGreaterThan(100);
  });
});
