import { describe, expect, it } from 'vitest';
import { encodeG711, type G711Codec } from '../../../media/codecs/g711.ts';
import { meanPower } from '../../../media/dsp/level.ts';
import { PartyAnswerDetector } from '../../../media/relay/party-answer-detector.ts';
import { seededRandom } from '../../../runtime/seeded-random.ts';
import * as fc from '../../properties.ts';
import { decodedPacket } from '../decoded-packet.ts';
import { Bench } from '../relay-bench.ts';
import { beep, joined, silence } from './answers.ts';

const FRAME_SAMPLES = 160;

/** Noise in a syllable rhythm. */
function words(durationMs: number): Int16Array<ArrayBuffer> {
  const random = seededRandom(5);
  return Int16Array.from({ length: durationMs * 8 }, (_, i) => {
    const syllable = Math.abs(Math.sin((Math.PI * i) / 8 / 180));
    return Math.round(9000 * syllable * (2 * random() - 1));
  });
}

function openDetector() {
  const results: string[] = [];
  const state = { nowMs: 5000 };
  const detector = new PartyAnswerDetector({
    nowMs: state.nowMs,
    onResult: (result, afterMs) => results.push(`${result} after ${afterMs}`),
  });
  const say = (frame: Int16Array, timestamp: number, codec: G711Codec = 'PCMU'): void => {
    const datagram = new Uint8Array(FRAME_SAMPLES);
    encodeG711(codec, frame, datagram);
    detector.addAudio(decodedPacket(datagram, { codec, timestamp }), state.nowMs);
  };
  return Object.assign(state, { detector, results, say });
}

describe('answer detection of a party', () => {
  it('reports unknown for a peer that never sends, by time alone', () => {
    const { detector, results } = openDetector();
    for (let ms = 250; ms <= 70_000; ms += 250) detector.judge(5000 + ms, 5000 + ms);
    expect(results).toEqual(['unknown after 5250']);
    expect(detector.isOver).toBe(true);
  });

  it('reports unknown for a silent peer while each turn of its thread is late', () => {
    const { detector, results } = openDetector();
    for (let ms = 700; ms <= 7000; ms += 700) detector.judge(5000 + ms, 4300 + ms);
    expect(results).toEqual(['unknown after 6300']);
  });

  it('detects a person whose phone suppresses silence within 1.5 s of the last word', () => {
    const bench = openDetector();
    const greeting = words(600);
    for (let at = 0; at < greeting.length; at += FRAME_SAMPLES) {
      bench.nowMs += 20;
      bench.say(greeting.subarray(at, at + FRAME_SAMPLES), at);
    }
    const endMs = bench.nowMs;
    while (bench.results.length === 0) {
      bench.nowMs += 250;
      bench.detector.judge(bench.nowMs, bench.nowMs);
    }
    expect(bench.results[0]).toMatch(/^human/);
    expect(bench.nowMs - endMs).toBeLessThanOrEqual(1250);
  });

  it.each([700, 900, 2500])('ignores a stall of its own thread: %i ms', (stallMs) => {
    const bench = openDetector();
    const greeting = words(6000);
    const startedAtMs = bench.nowMs;
    let timestamp = 0;
    const hearUntil = (ms: number): void => {
      for (; timestamp / 8 < ms; timestamp += FRAME_SAMPLES) {
        bench.say(greeting.subarray(timestamp, timestamp + FRAME_SAMPLES), timestamp);
      }
    };
    // After a stall, timers fire before the queued packets.
    for (let ms = 250; ms <= 6000; ms += ms === 1000 ? stallMs : 250) {
      bench.nowMs = startedAtMs + ms;
      bench.detector.judge(bench.nowMs, startedAtMs + (ms === 1000 + stallMs ? 1000 : ms));
      hearUntil(ms);
    }
    expect(bench.results).toHaveLength(1);
    expect(bench.results[0]).toMatch(/^machine/);
  });

  it.each([
    [340, 3500],
    [590, 3500],
    [900, 3500],
    [180, 3840],
  ])('detects a beep that arrives during a stall of its own thread: %i ms after %i ms', (stallMs, stalledAtMs) => {
    const bench = openDetector();
    const said = joined(words(2980), silence(540), beep(1000, 460), silence(1500));
    const startedAtMs = bench.nowMs;
    let timestamp = 0;
    for (let ms = 10; ms <= said.length / 8; ms += ms === stalledAtMs ? stallMs : 10) {
      bench.nowMs = startedAtMs + ms;
      // After the stall, the timer fires before the queued packets are read.
      const isLate = ms === stalledAtMs + stallMs;
      const readUntilMs = startedAtMs + (isLate ? stalledAtMs : ms);
      if (ms % 250 === 0 || isLate) bench.detector.judge(bench.nowMs, readUntilMs);
      for (; timestamp / 8 < ms; timestamp += FRAME_SAMPLES) {
        bench.say(said.subarray(timestamp, timestamp + FRAME_SAMPLES), timestamp);
      }
    }
    expect(bench.results.map((result) => result.split(' ')[0])).toEqual(['machine', 'beep']);
  });

  it('detects a person despite the echo of the agent', () => {
    for (const isKnown of [true, false]) {
      const bench = openDetector();
      const answer = words(4000);
      const echo = answer.map((sample) => sample / 6);
      const said = joined(words(600), silence(300), echo);
      for (let at = 0; at < said.length; at += FRAME_SAMPLES) {
        bench.nowMs += 20;
        const answerFrom = at - 800 * 8;
        const received = answerFrom < 0 ? 0 : meanPower(answer.subarray(answerFrom, answerFrom + FRAME_SAMPLES));
        if (isKnown) bench.detector.noteSent(received, bench.nowMs);
        bench.say(said.subarray(at, at + FRAME_SAMPLES), at);
      }
      expect(bench.results[0]).toMatch(isKnown ? /^human/ : /^machine/);
    }
  });

  it('detects a machine and its beep with late, reordered and lost packets', () => {
    const bench = openDetector();
    const said = joined(silence(300), words(3000), silence(500), beep(1000, 600), silence(600));
    const random = seededRandom(11);
    const frames = Array.from({ length: said.length / FRAME_SAMPLES }, (_, index) => ({
      at: index * FRAME_SAMPLES,
      dueMs: 5000 + index * 20 + random() * 50,
    })).filter(({ at }) => at === 0 || random() > 0.02);
    for (const { at, dueMs } of frames.toSorted((a, b) => a.dueMs - b.dueMs)) {
      bench.nowMs = dueMs;
      bench.say(said.subarray(at, at + FRAME_SAMPLES), at);
    }
    expect(bench.results.map((result) => result.split(' ')[0])).toEqual(['machine', 'beep']);
    expect(bench.detector.isOver).toBe(true);
  });

  it('decides once or twice for any timestamps, sources and pauses', () => {
    const packets = fc.array(
      fc.record({
        ssrc: fc.integer({ min: 1, max: 2 }),
        timestamp: fc.integer({ min: 0, max: 0xffff_ffff }),
        waitMs: fc.integer({ min: 0, max: 3000 }),
        bytes: fc.integer({ min: 1, max: 1440 }),
      }),
      { maxLength: 60 },
    );
    fc.assert(
      fc.property(packets, fc.integer(), (all, seed) => {
        const { detector, results } = openDetector();
        const random = seededRandom(seed);
        let nowMs = 5000;
        for (const { ssrc, timestamp, waitMs, bytes } of all) {
          nowMs += waitMs;
          const datagram = Uint8Array.from({ length: bytes }, () => random() * 256);
          detector.addAudio(decodedPacket(datagram, { codec: 'PCMA', ssrc, timestamp }), nowMs);
        }
        for (let ms = 0; ms <= 120_000; ms += 250) detector.judge(nowMs + ms, nowMs + ms);
        expect(results.length).toBeGreaterThanOrEqual(1);
        expect(results.length).toBeLessThanOrEqual(2);
        expect(detector.isOver).toBe(true);
      }),
    );
  });
});

describe('machine detection of a session', () => {
  it('posts the result for the selected party only', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('bridged');
    bench.session.detectMachine('customer');
    await talk(bench, { agent: joined(words(500), silence(1500)), customer: joined(words(500), silence(1500)) });
    const found = bench.events.filter(({ type }) => type === 'machine.detected');
    expect(found).toMatchObject([{ leg: 'customer', result: 'human' }]);
    bench.session.tick();
    expect(bench.partyDump('customer')).toMatchObject({ answerDetector: null });
  });

  it('ignores the echo of the agent', async () => {
    await using bench = await Bench.open();
    await bench.connect();
    bench.setPath('bridged');
    bench.session.detectMachine('customer');
    const answer = words(3000);
    const echo = answer.map((sample) => sample / 6);
    await talk(bench, { agent: joined(silence(800), answer), customer: joined(words(500), silence(300), echo) });
    expect(bench.events.filter(({ type }) => type === 'machine.detected')).toMatchObject([{ result: 'human' }]);
  });

  it('posts nothing for a party that left, and rejects an unknown one', async () => {
    await using bench = await Bench.open();
    bench.session.detectMachine('customer');
    await bench.session.removeParty('customer');
    bench.nowMs += 60_000;
    bench.session.tick();
    expect(bench.events).toEqual([]);
    expect(() => bench.session.detectMachine('customer')).toThrow(RangeError);
    await bench.session.close();
    expect(() => bench.session.detectMachine('agent')).toThrow(RangeError);
  });
});

async function talk(bench: Bench, said: Record<'agent' | 'customer', Int16Array>): Promise<void> {
  for (let at = 0; at < said.agent.length; at += FRAME_SAMPLES) {
    for (const leg of ['agent', 'customer'] as const) {
      const octets = new Uint8Array(FRAME_SAMPLES);
      encodeG711('PCMU', said[leg].subarray(at, at + FRAME_SAMPLES), octets);
      bench[leg].say(bench.ports[leg], 'PCMU', octets);
      await bench.settled(leg);
    }
    bench.nowMs += 20;
  }
}
