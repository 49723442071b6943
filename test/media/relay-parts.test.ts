import { describe, expect, it } from 'vitest';
import { Endpoint } from '../../media/datagrams/endpoint.ts';
import { FramePacer } from '../../media/relay/frame-pacer.ts';
import { SendRing } from '../../media/relay/send-ring.ts';
import {
  LATCH_WINDOW_MS,
  RELATCH_AFTER_SILENCE_MS,
  SourceLatch,
  STRANGER_PACKETS,
} from '../../media/relay/source-latch.ts';

describe('source latch', () => {
  const signalled = Endpoint.of('10.0.0.1', 4000);
  const samehost = Endpoint.of('10.0.0.1', 5000);
  const stranger = Endpoint.of('10.9.9.9', 4000);
  const open = (): { latch: SourceLatch; hear: (from: Endpoint, nowMs: number) => string } => {
    const latch = new SourceLatch();
    latch.expect(signalled, 0);
    let sequence = 0;
    return {
      latch,
      hear: (from, nowMs) => latch.judge(from, { ssrc: 1, sequence: sequence++ }, nowMs),
    };
  };

  it('prefers the signalled address to its host, and its host to others, within the window', () => {
    const { hear } = open();
    for (let i = 1; i < STRANGER_PACKETS; i++) expect(hear(stranger, i)).toBe('refused');
    expect(hear(stranger, 10)).toBe('latched');
    expect(hear(samehost, 20)).toBe('latched');
    expect(hear(stranger, 30)).toBe('refused');
    expect(hear(signalled, 40)).toBe('latched');
    expect(hear(samehost, 50)).toBe('refused');
    expect(hear(signalled, 60)).toBe('accepted');
  });

  it('closes after the window, even to the signalled address while the latched one sends', () => {
    const { hear } = open();
    hear(samehost, 100);
    for (let nowMs = 1000; nowMs < 20_000; nowMs += 1000) {
      expect(hear(samehost, nowMs)).toBe('accepted');
      if (nowMs >= LATCH_WINDOW_MS) expect(hear(signalled, nowMs + 500)).toBe('refused');
    }
  });

  it('lets only the signalled host replace a silent source', () => {
    const { hear } = open();
    hear(samehost, 100);
    const later = LATCH_WINDOW_MS + RELATCH_AFTER_SILENCE_MS;
    for (let i = 0; i < 10; i++) expect(hear(stranger, later + i)).toBe('refused');
    expect(hear(signalled, later + 20)).toBe('latched');
    expect(hear(samehost, later + 40)).toBe('refused');
  });

  it('lets one stranger replace a silent one after new signalling', () => {
    const { latch, hear } = open();
    const moved = Endpoint.of('10.9.9.9', 6000);
    for (let i = 0; i < STRANGER_PACKETS; i++) hear(stranger, i);
    const resumedAtMs = 60_000;
    for (let i = 0; i < 10; i++) expect(hear(moved, resumedAtMs - 100 + i)).toBe('refused');
    latch.expect(signalled, resumedAtMs);
    for (let i = 1; i < STRANGER_PACKETS; i++) expect(hear(moved, resumedAtMs + i)).toBe('refused');
    expect(hear(moved, resumedAtMs + 10)).toBe('latched');
    for (let i = 0; i < 10; i++) expect(hear(stranger, resumedAtMs + 20 + i)).toBe('refused');
    expect(hear(moved, resumedAtMs + 40)).toBe('accepted');
  });

  it('rejects strangers after the window or without a consistent stream', () => {
    const late = open();
    for (let i = 0; i < 10; i++) expect(late.hear(stranger, LATCH_WINDOW_MS + i)).toBe('refused');
    const { latch } = open();
    const other = Endpoint.of('10.9.9.9', 1);
    for (let i = 0; i < 10; i++) expect(latch.judge(other, { ssrc: 1, sequence: i * 2 }, i)).toBe('refused');
    for (let i = 0; i < 10; i++) expect(latch.judge(other, { ssrc: i, sequence: 100 + i }, i)).toBe('refused');
  });

  it('keeps its source for the same SDP and resets for a different one', () => {
    const { latch, hear } = open();
    const moved = Endpoint.of('10.0.0.2', 4000);
    hear(samehost, 100);
    latch.expect(signalled, 10_000);
    expect(hear(samehost, 10_001)).toBe('accepted');
    latch.expect(moved, 20_000);
    expect(latch.isLatched).toBe(false);
    expect(latch.judge(moved, { ssrc: 1, sequence: 1 }, 20_001)).toBe('latched');
  });
});

describe('frame pacer', () => {
  it('paces fifty frames per second despite timer delays, and skips a stall', () => {
    let nowMs = 0;
    let due: { atMs: number; callback: () => void } | null = null;
    const pacer = new FramePacer({
      nowMs: () => nowMs,
      after: (delayMs, callback) => {
        due = { atMs: nowMs + delayMs, callback };
        return () => {
          due = null;
        };
      },
    });
    const wake = (lateMs: number): void => {
      const timer = due as { atMs: number; callback: () => void } | null;
      if (timer === null) return;
      nowMs = timer.atMs + lateMs;
      timer.callback();
    };
    let frames = 0;
    const stop = pacer.add(() => {
      frames += 1;
    });
    while (nowMs < 9990) wake((nowMs * 7) % 13);
    expect(Math.abs(frames - nowMs / 20)).toBeLessThanOrEqual(1);
    const before = frames;
    wake(5000);
    expect(frames - before).toBeLessThanOrEqual(2);
    stop();
    expect(due).toBeNull();
  });
});

describe('send ring', () => {
  it('reuses a slot only after a thousand packets', () => {
    const ring = new SendRing();
    const first = ring.take(172);
    first.fill(1);
    for (let i = 0; i < 1023; i++) ring.take(i % 2 === 0 ? 172 : 1452).fill(2);
    expect(first.every((byte) => byte === 1)).toBe(true);
    expect(ring.take(92)).toHaveLength(92);
  });
});
