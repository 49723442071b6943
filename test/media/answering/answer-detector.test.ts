import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ANSWER_WINDOW_SAMPLES, AnswerDetector } from '../../../media/answering/answer-detector.ts';
import { decodeG711 } from '../../../media/codecs/g711.ts';
import { seededRandom } from '../../../runtime/seeded-random.ts';
import * as fc from '../../properties.ts';
import { isDeep } from '../../properties.ts';
import { asMulaw8k, spokenUtterances } from '../../speech/spoken.ts';
import { MUSIC } from '../listening/sounds.ts';
import { type AnswerKind, atTelephoneRate, casesOf, HELD_OUT, TUNING } from './answer-cases.ts';
import { beep, joined, lengthMs, overLine, Speakers, silence } from './answers.ts';

let speakers: Speakers;
beforeAll(async () => {
  speakers = await Speakers.start();
});
afterAll(async () => {
  await speakers[Symbol.asyncDispose]();
});

/** Results with the time received before each. */
function resultsOf(samples: Int16Array): { result: string; atMs: number }[] {
  const detector = new AnswerDetector();
  const results: { result: string; atMs: number }[] = [];
  for (let at = 0; at + ANSWER_WINDOW_SAMPLES <= samples.length; at += ANSWER_WINDOW_SAMPLES) {
    const result = detector.add(samples.subarray(at, at + ANSWER_WINDOW_SAMPLES));
    if (result !== null) results.push({ result, atMs: (at + ANSWER_WINDOW_SAMPLES) / 8 });
  }
  return results;
}

const named = (samples: Int16Array): string[] => resultsOf(samples).map(({ result }) => result);

/** Correct results, and the share of recordings that must reach them. */
const ACCURACY: Record<AnswerKind, [results: string, share: number]> = {
  human: ['human', 0.97],
  machine: ['machine beep', 0.9],
  'machine without a beep': ['machine', 0.9],
  // Some are at 1400 Hz, the frequency of recording warning tones.
  beep: ['beep', 0.95],
  fax: ['fax', 0.97],
  unknown: ['unknown', 0.97],
};

describe.each([
  // The training set detects regressions only.
  ['training set', TUNING, 4, isDeep ? 60 : 12],
  ['test set', HELD_OUT, 20, isDeep ? 60 : 36],
] as const)('accuracy on the %s', (_, sentences, seed, count) => {
  it.each(Object.keys(ACCURACY) as AnswerKind[])('reaches its goal for %s', async (kind) => {
    const [right, share] = ACCURACY[kind];
    const wrong: string[] = [];
    for await (const { name, samples } of casesOf(kind, { count, seed, sentences, speakers })) {
      const found = named(samples).join(' ');
      if (found !== right) wrong.push(`${found || 'nothing'} for ${name}`);
    }
    if (process.env.SHOW_ACCURACY) console.info(kind, 1 - wrong.length / count, wrong);
    expect(1 - wrong.length / count, wrong.join('\n')).toBeGreaterThanOrEqual(share);
  });

  it('detects a person within 1.1 s of the end of the greeting', async () => {
    for await (const recording of casesOf('human', { count: isDeep ? 30 : 12, seed: seed + 1, sentences, speakers })) {
      const [first] = resultsOf(recording.samples);
      if (first?.result === 'human') {
        expect(first.atMs - recording.greetingEndsAtMs, recording.name).toBeLessThan(1100);
      }
    }
  });
});

describe('answer detector with human speech', () => {
  const spoken = spokenUtterances().map(({ name, samples }) => {
    const octets = asMulaw8k(samples);
    const narrow = new Int16Array(octets.length);
    decodeG711('PCMU', octets, narrow);
    return { name, samples: narrow };
  });

  it.each(spoken.filter(({ name }) => name.startsWith('librivox')))('classifies as machine: $name', ({ samples }) => {
    expect(named(joined(silence(800), samples, silence(3000)))).toEqual(['machine']);
  });

  it('classifies a person who says a word or two and waits as human', () => {
    const short = spoken.filter(({ name, samples }) => name.startsWith('cards') && lengthMs(samples) < 2000);
    expect(short.length).toBeGreaterThan(3);
    const found = short.map(({ samples }) => named(joined(silence(500), samples, silence(3000))).join(' '));
    expect(found).toEqual(short.map(() => 'human'));
  });
});

describe('answer detector', () => {
  it('reports silence as unknown after five seconds', () => {
    expect(resultsOf(silence(20_000))).toEqual([{ result: 'unknown', atMs: 5024 }]);
  });

  it.each(Object.keys(MUSIC))('never classifies %s as human', (name) => {
    const music = atTelephoneRate(MUSIC[name]!({ durationMs: 12_000, levelDbfs: -12, seed: 3 }));
    expect(named(music)).not.toContain('human');
  });

  it.each([80, 150, 600, 1900])('detects a beep of %d ms after an announcement', async (durationMs) => {
    const said = await speakers.say('please leave a message for the whole family after the tone', 'en-us');
    for (const hz of [440, 850, 1000, 1400, 2000]) {
      const samples = joined(silence(300), said, silence(400), beep(hz, durationMs), silence(1000));
      expect(named(samples), `${hz} Hz`).toEqual(['machine', 'beep']);
    }
  });

  it.each([40, 2600])('ignores a tone of %d ms', async (durationMs) => {
    const said = await speakers.say('please leave a message for the whole family after the tone', 'en-us');
    const samples = joined(silence(300), said, silence(400), beep(1000, durationMs), silence(1000));
    expect(named(samples)).toEqual(['machine']);
  });

  it('ignores key presses after an announcement', async () => {
    const said = await speakers.say('please leave a message for the whole family after the tone', 'en-us');
    const key = joined(beep(697, 200), silence(0)).map((sample, i) => sample / 2 + beep(1336, 200)[i]! / 2);
    expect(named(joined(silence(300), said, silence(400), key, silence(1000)))).toEqual(['machine']);
  });

  it('ignores a cough and detects the person who speaks after it', async () => {
    const random = seededRandom(3);
    const cough = Int16Array.from({ length: 8 * 60 }, () => 20_000 * (random() - 0.5));
    const hello = await speakers.say('hello', 'en-us');
    const samples = joined(silence(500), cough, silence(1500), hello, silence(2000));
    const [first] = resultsOf(samples);
    expect(first?.result).toBe('human');
    expect(first?.atMs).toBeGreaterThan(2060);
  });

  it('ignores the warning tone of a recorder', async () => {
    const hello = await speakers.say('hello', 'en-us');
    for (const durationMs of [200, 500]) {
      const tone = beep(1400, durationMs, -16);
      expect(named(joined(silence(300), tone, silence(800), hello, silence(1500)))).toEqual(['human']);
      expect(named(joined(silence(300), hello, silence(200), tone, silence(1500)))).toEqual(['human']);
      expect(named(joined(silence(300), tone, silence(6000)))).toEqual(['unknown']);
    }
  });

  it('waits at most a minute for the beep of a machine', async () => {
    const said = await speakers.say('please leave a message for the whole family after the tone', 'en-us');
    const samples = joined(said, silence(60_000), beep(1000, 500), silence(1000));
    expect(named(samples)).toEqual(['machine']);
  });

  it('classifies quiet and loud persons alike', async () => {
    const hello = await speakers.say('hello', 'en-us');
    for (const gainDb of [0, -10, -20, -30]) {
      const samples = joined(silence(400), hello, silence(1500)).map((sample) => sample * 10 ** (gainDb / 20));
      expect(named(samples), `${gainDb} dB`).toEqual(['human']);
    }
  });

  it('decides once on any sound, and reports at most a beep after a machine', () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const random = seededRandom(seed);
        const parts = Array.from({ length: 12 }, () => anything(random));
        const results = named(overLine(joined(...parts, silence(9000)), random));
        expect(['human', 'machine', 'machine beep', 'beep', 'fax', 'unknown']).toContain(results.join(' '));
      }),
      { numRuns: 30 },
    );
  });
});

function anything(random: () => number): Int16Array<ArrayBuffer> {
  const durationMs = random() * 1500;
  const kind = Math.floor(random() * 3);
  if (kind === 0) return silence(durationMs);
  if (kind === 1) return beep(200 + random() * 3000, durationMs);
  return silence(durationMs).map(() => 30_000 * (random() - 0.5));
}
