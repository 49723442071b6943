import { describe, expect, it } from 'vitest';
import { encodeG711 } from '../../media/codecs/g711.ts';
import { levelDbov, meanPower } from '../../media/dsp/level.ts';
import { FRAME_SAMPLES, tone } from '../../media/dsp/tones.ts';
import { FramePacer } from '../../media/relay/frame-pacer.ts';
import { JitterBuffer } from '../../media/relay/jitter-buffer.ts';
import { Playout } from '../../media/relay/playout.ts';
import { emptyRtpHeader } from '../../media/rtp/packet.ts';
import * as fc from '../properties.ts';
import { decodedPacket } from './decoded-packet.ts';
import { largest } from './sounds.ts';

/** Initial delay of 40 ms, until the jitter is known. */
const DELAY_FRAMES = 2;
const NOISE_60_DBOV = Uint8Array.of(60);

/** A party that sends frames as scripted, with the frames played out. */
class Speaker {
  readonly taken: Int16Array[] = [];
  readonly #playout = new Playout({ nowMs: 0 });
  readonly #sound = tone({ frequenciesHz: [233], durationMs: 2000 });
  #frame = 0;

  /** 20 ms of tone each: `.` arrives, `x` is lost, `-` is not sent, `n` is comfort noise, `<` comes 40 ms late. */
  say(script: string): this {
    const late: number[] = [];
    for (const event of script) {
      if (event === '.') this.#deliver(this.#frame);
      if (event === 'n') this.announce(NOISE_60_DBOV);
      for (const frame of late.splice(0, late[0] !== undefined && late[0] <= this.#frame - 2 ? 1 : 0)) {
        this.#deliver(frame);
      }
      if (event === '<') late.push(this.#frame);
      this.#frame += 1;
      this.#playout.takeFrame(this.#nowMs);
      this.taken.push(this.#playout.frame.slice());
    }
    return this;
  }

  announce(payload: Uint8Array): void {
    const header = { ...emptyRtpHeader(), ...this.#place(this.#frame), payloadBytes: payload.length };
    this.#playout.addComfortNoise(payload, header, this.#nowMs);
  }

  playedOf(index: number): Int16Array {
    return this.taken[index + DELAY_FRAMES]!;
  }

  saidIn(index: number): Int16Array {
    return this.#sound.subarray(index * FRAME_SAMPLES, (index + 1) * FRAME_SAMPLES);
  }

  dump(): Record<string, unknown> {
    return this.#playout.dump() as Record<string, unknown>;
  }

  get #nowMs(): number {
    return 20 * this.#frame;
  }

  #deliver(frame: number): void {
    const octets = new Uint8Array(FRAME_SAMPLES);
    encodeG711('PCMU', this.saidIn(frame), octets);
    this.#playout.addAudio(decodedPacket(octets, this.#place(frame)), this.#nowMs);
  }

  #place(frame: number) {
    return { ssrc: 7, sequence: frame, timestamp: frame * FRAME_SAMPLES };
  }
}

/** Plays 20 ms packets that arrive late by `lateMs`; returns output levels in dBov. */
function playedOut(frames: number, lateMs: (frame: number) => number, level = -10) {
  const sound = tone({ frequenciesHz: [233], durationMs: 20 * frames, levelDbfs: level });
  const playout = new Playout({ nowMs: 0 });
  const packets = Array.from({ length: frames }, (_, frame) => ({ frame, atMs: 20 * frame + lateMs(frame) }));
  packets.sort((a, b) => a.atMs - b.atMs);
  const levels: number[] = [];
  for (let nowMs = 0; nowMs < 20 * frames; nowMs += 20) {
    for (; packets[0] !== undefined && packets[0].atMs <= nowMs; packets.shift()) {
      const { frame, atMs } = packets[0];
      const octets = new Uint8Array(FRAME_SAMPLES);
      encodeG711('PCMU', sound.subarray(frame * FRAME_SAMPLES, (frame + 1) * FRAME_SAMPLES), octets);
      playout.addAudio(decodedPacket(octets, { sequence: frame, timestamp: frame * FRAME_SAMPLES }), atMs);
    }
    playout.takeFrame(nowMs);
    levels.push(levelDbov(playout.frame));
  }
  return { levels, dump: playout.dump() as { delayMs: number; samplesConcealed: number; samplesLate: number } };
}

describe('playout delay', () => {
  it('falls to 20 ms for punctual packets, in a pause', () => {
    expect(playedOut(500, () => 0, -60).dump).toMatchObject({ delayMs: 20, samplesConcealed: 0, samplesLate: 0 });
  });

  it('falls after ten seconds without a pause, and without a gap', () => {
    const { levels, dump } = playedOut(1000, () => 0);
    expect(dump).toMatchObject({ delayMs: 20, samplesLate: 0 });
    expect(Math.min(...levels.slice(10))).toBeGreaterThan(-16);
  });

  it('grows with jitter until nothing needs concealment', () => {
    const jitter = (frame: number): number => (frame * 37) % 61;
    const before = playedOut(400, jitter).dump;
    const after = playedOut(800, jitter).dump;
    expect(after).toMatchObject({ delayMs: 80, samplesConcealed: before.samplesConcealed });
  });

  it('never exceeds 80 ms', () => {
    const { dump } = playedOut(500, (frame) => (frame * 37) % 400);
    expect(dump.delayMs).toBe(80);
    expect(dump.samplesLate).toBeGreaterThan(0);
  });
});

describe('playout after a stall of the thread', () => {
  /** Levels of 50 frames, and the number dropped. The packets of a stall arrive in time, but are taken after it. */
  function playedAfterStall(stalledMs: number) {
    const playout = new Playout({ nowMs: 0 });
    const sound = new Uint8Array(FRAME_SAMPLES);
    encodeG711('PCMU', tone({ frequenciesHz: [400], durationMs: 20 }), sound);
    let nowMs = 0;
    let pace = (): void => {};
    const levels: number[] = [];
    const after = (_delayMs: number, callback: () => void) => {
      pace = callback;
      return () => {};
    };
    new FramePacer({ nowMs: () => nowMs, after }).add(() => {
      playout.takeFrame(nowMs);
      levels.push(levelDbov(playout.frame));
    });
    for (let frame = 0; frame < 50; frame++) {
      nowMs = 20 * frame;
      playout.addAudio(decodedPacket(sound, { sequence: frame, timestamp: frame * FRAME_SAMPLES }), nowMs);
      if (frame <= 20 || nowMs >= 420 + stalledMs) pace();
    }
    const { framesDropped } = playout.dump() as { framesDropped: number };
    return { levels, framesDropped };
  }

  it.each([40, 60, 80, 100])('plays all audio if the pacer makes up for %i ms', (stalledMs) => {
    const { levels, framesDropped } = playedAfterStall(stalledMs);
    expect(levels).toHaveLength(50);
    expect(Math.min(...levels.slice(10))).toBeGreaterThan(-16);
    expect(framesDropped).toBe(0);
  });

  it.each([120, 140, 300])('drops what is old if the pacer does not make up for %i ms', (stalledMs) => {
    const { levels, framesDropped } = playedAfterStall(stalledMs);
    expect(Math.min(...levels.slice(10))).toBeGreaterThan(-16);
    expect(framesDropped).toBeGreaterThanOrEqual(stalledMs / 20 - 3);
  });
});

describe('jitter buffer', () => {
  it('returns each packet once in timestamp order, for any arrival order', () => {
    const packets = fc.array(
      fc.record({ frame: fc.integer({ min: 0, max: 99 }), bytes: fc.integer({ min: 1, max: 400 }) }),
      {
        maxLength: 64,
      },
    );
    fc.assert(
      fc.property(packets, (put) => {
        const buffer = new JitterBuffer();
        const payloads = new Map<number, Uint8Array>();
        for (const { frame, bytes } of put) {
          const payload = new Uint8Array(bytes).fill(frame);
          buffer.put(decodedPacket(payload, { sequence: frame, timestamp: 160 * frame }), 160 * frame);
          if (!payloads.has(frame)) payloads.set(frame, payload);
        }
        const taken: [number, Uint8Array][] = [];
        for (let packet = buffer.first; packet !== null; packet = buffer.first) {
          taken.push([packet.sequence, packet.datagram.slice(0, packet.payloadBytes)]);
          buffer.shift();
        }
        expect(taken).toEqual([...payloads].sort(([a], [b]) => a - b));
      }),
    );
  });
});

describe('playout of a party', () => {
  it('conceals a lost packet, but not a late one', () => {
    const speaker = new Speaker().say('..........x......<.......');
    expect(speaker.dump()).toMatchObject({ samplesConcealed: FRAME_SAMPLES, samplesLate: 0 });
    for (const index of [10, 17]) {
      const error = speaker.playedOf(index).map((sample, i) => sample - speaker.saidIn(index)[i]!);
      expect(meanPower(error), `frame ${index}`).toBeLessThan(0.2 * meanPower(speaker.saidIn(index)));
    }
  });

  it('fades to silence when a party stops abruptly', () => {
    const speaker = new Speaker().say('..........----------');
    expect(largest(speaker.playedOf(10))).toBeGreaterThan(3000);
    expect(largest(speaker.playedOf(13))).toBe(0);
  });

  it('fills an announced pause with comfort noise until audio returns', () => {
    const speaker = new Speaker().say('..........n-----------........');
    for (const index of [12, 15, 20]) {
      expect(Math.abs(levelDbov(speaker.playedOf(index)) + 60), `frame ${index}`).toBeLessThan(3);
    }
    expect(speaker.dump()).toMatchObject({ samplesConcealed: 0, isPausing: false });
    expect(meanPower(speaker.playedOf(24))).toBeGreaterThan(0.9 * meanPower(speaker.saidIn(24)));
  });

  it('detects a loss after a pause', () => {
    const speaker = new Speaker().say('.....n---......x......');
    expect(speaker.dump()).toMatchObject({ samplesConcealed: FRAME_SAMPLES, isPausing: false });
    expect(largest(speaker.playedOf(15))).toBeGreaterThan(3000);
  });

  it('handles a second pause announced before the first was played', () => {
    const speaker = new Speaker().say('.....n-.n-----------');
    expect(speaker.dump()).toMatchObject({ samplesConcealed: 0, isPausing: true });
    expect(Math.abs(levelDbov(speaker.playedOf(12)) + 60)).toBeLessThan(3);
  });

  it('ignores comfort noise without a payload', () => {
    const speaker = new Speaker().say('.....');
    speaker.announce(new Uint8Array(0));
    expect(speaker.say('---------').dump()).toMatchObject({ isPausing: false });
  });
});
