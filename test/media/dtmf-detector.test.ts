import { beforeAll, describe, expect, it } from 'vitest';
import { encodeG711, type G711Codec } from '../../media/codecs/g711.ts';
import { DtmfDetector } from '../../media/dsp/dtmf-detector.ts';
import { holdMusicFrames } from '../../media/dsp/hold-music.ts';
import { ringbackFrames, tone } from '../../media/dsp/tones.ts';
import { seededRandom } from '../../runtime/seeded-random.ts';
import * as fc from '../properties.ts';
import { spokenUtterances } from '../speech/spoken.ts';
import { HELD_OUT, TUNING } from './answering/answer-cases.ts';
import { joined, Speakers, silence } from './answering/answers.ts';
import { MUSIC, NOISES, SIGNALLING } from './listening/sounds.ts';
import { syntheticVowel } from './synthetic-vowels.ts';

const KEYS = '123A456B789C*0#D';
const LOW_HZ = [697, 770, 852, 941];
const HIGH_HZ = [1209, 1336, 1477, 1633];
const CODECS: readonly G711Codec[] = ['PCMU', 'PCMA'];

interface Press {
  digit: string;
  durationMs?: number;
  /** Level of each tone; full scale is +3.14 dBm0. */
  levelDbm0?: number;
  /** High tone relative to the low one. */
  twistDb?: number;
  lowOff?: number;
  highOff?: number;
  phase?: number;
}

function press(options: Press): Int16Array<ArrayBuffer> {
  const { digit, durationMs = 80, levelDbm0 = -10, twistDb = 0, lowOff = 0, highOff = 0, phase = 0 } = options;
  const key = KEYS.indexOf(digit);
  const lowHz = LOW_HZ[key >> 2]! * (1 + lowOff);
  const highHz = HIGH_HZ[key & 3]! * (1 + highOff);
  const amplitude = (dbm0: number) => 32_767 * 10 ** ((dbm0 - 3.14) / 20);
  const low = amplitude(levelDbm0 - Math.max(0, twistDb));
  const high = amplitude(levelDbm0 + Math.min(0, twistDb));
  return Int16Array.from({ length: Math.round(durationMs * 8) }, (_, i) =>
    Math.round(
      low * Math.sin((2 * Math.PI * lowHz * i) / 8000 + phase) +
        high * Math.sin((2 * Math.PI * highHz * i) / 8000 + 2.7 * phase),
    ),
  );
}

/** Adds white noise `snrDb` below two tones of that level. */
function noisy(samples: Int16Array, snrDb: number, levelDbm0: number, random: () => number): Int16Array {
  const rms = (32_767 / Math.SQRT2) * 10 ** ((levelDbm0 - 3.14 + 3.01 - snrDb) / 20);
  return samples.map((sample) => sample + Math.round(rms * Math.sqrt(3) * (2 * random() - 1)));
}

function detectPresses(samples: Int16Array, codec: G711Codec = 'PCMU', packetSamples = 160) {
  const presses: { digit: string; durationMs: number }[] = [];
  const detector = new DtmfDetector((digit, durationMs) => presses.push({ digit, durationMs }));
  const octets = new Uint8Array(samples.length);
  encodeG711(codec, samples, octets);
  for (let at = 0; at < octets.length; at += packetSamples) {
    detector.addG711(codec, octets, at, Math.min(octets.length, at + packetSamples));
  }
  detector.end();
  return presses;
}

const digitsIn = (samples: Int16Array, codec?: G711Codec, packetSamples?: number): string =>
  detectPresses(samples, codec, packetSamples)
    .map(({ digit }) => digit)
    .join('');

const between = (middle: Int16Array) => joined(silence(60), middle, silence(60));
/** Decimates sounds of 16 kHz; aliasing is harmless for these. */
const halved = (samples: Int16Array) =>
  Int16Array.from({ length: samples.length >> 1 }, (_, i) => (samples[2 * i]! + samples[2 * i + 1]!) >> 1);

describe.each(CODECS)('DTMF detector with %s', (codec) => {
  it('detects every digit from -3 to -25 dBm0 per tone, for any packet size', () => {
    for (const levelDbm0 of [-3, -8, -16, -25]) {
      const all = [...KEYS].map((digit) => joined(press({ digit, levelDbm0, durationMs: 50 }), silence(50)));
      for (const packetSamples of [80, 160, 240, 1000]) {
        expect(digitsIn(joined(...all), codec, packetSamples), `${levelDbm0} dBm0`).toBe(KEYS);
      }
    }
  });

  it('detects every digit in white noise at 15 dB SNR', () => {
    const random = seededRandom(7);
    const all = [...KEYS].map((digit) => joined(press({ digit, durationMs: 50 }), silence(50)));
    for (let i = 0; i < 10; i++) expect(digitsIn(noisy(joined(...all), 15, -10, random), codec)).toBe(KEYS);
  });

  it('detects random digits of random lengths, pauses, levels, twists and phases once each', () => {
    const pressed = fc.record({
      digit: fc.constantFrom(...KEYS),
      durationMs: fc.integer({ min: 40, max: 400 }),
      pauseMs: fc.integer({ min: 40, max: 200 }),
      levelDbm0: fc.integer({ min: -22, max: -3 }),
      twistDb: fc.integer({ min: -8, max: 4 }).map((db) => (db < -3 ? db + 3 : db)),
      lowOff: fc.double({ min: -0.015, max: 0.015, noNaN: true }),
      highOff: fc.double({ min: -0.015, max: 0.015, noNaN: true }),
      phase: fc.double({ min: 0, max: 6.28, noNaN: true }),
    });
    fc.assert(
      fc.property(fc.array(pressed, { maxLength: 12 }), fc.integer({ min: 0, max: 400 }), (presses, lead) => {
        const samples = joined(
          new Int16Array(lead),
          ...presses.flatMap((each) => [press(each), silence(each.pauseMs)]),
        );
        const received = detectPresses(samples, codec);
        expect(received.map(({ digit }) => digit)).toEqual(presses.map(({ digit }) => digit));
        for (const [i, { durationMs }] of received.entries())
          expect(Math.abs(durationMs - presses[i]!.durationMs)).toBeLessThan(10);
      }),
    );
  });
});

describe('DTMF detector limits', () => {
  it('accept a high tone from 8 dB below to 4 dB above the low one, and reject 10 dB below and 6 dB above', () => {
    for (const digit of KEYS) {
      for (const twistDb of [-8, -4, 2, 4]) {
        expect(digitsIn(between(press({ digit, twistDb })))).toBe(digit);
      }
      for (const twistDb of [-10.5, 6]) expect(digitsIn(between(press({ digit, twistDb })))).toBe('');
    }
  });

  it('accept tones 1.5 % off and reject those 3.5 % off', () => {
    for (const digit of KEYS) {
      for (const off of [-0.015, 0.015]) {
        expect(digitsIn(between(press({ digit, lowOff: off, highOff: -off })))).toBe(digit);
        expect(digitsIn(between(press({ digit, lowOff: off, highOff: off })))).toBe(digit);
      }
      for (const off of [-0.035, 0.035]) {
        expect(digitsIn(between(press({ digit, lowOff: off, durationMs: 200 })))).toBe('');
        expect(digitsIn(between(press({ digit, highOff: off, durationMs: 200 })))).toBe('');
      }
    }
  });

  it('accept 40 ms and reject 23 ms at any offset', () => {
    for (let lead = 0; lead < 160; lead += 7) {
      for (const digit of '159D') {
        const at = (durationMs: number) =>
          digitsIn(joined(new Int16Array(400 + lead), press({ digit, durationMs }), silence(60)));
        expect(at(40), `${lead}`).toBe(digit);
        expect(at(23), `${lead}`).toBe('');
      }
    }
  });

  it('accept a pause of 40 ms and bridge an interruption of 10 ms at any offset', () => {
    for (let lead = 0; lead < 160; lead += 7) {
      const twice = (pauseMs: number) => {
        const each = press({ digit: '5', durationMs: 60 });
        return digitsIn(joined(new Int16Array(lead), each, silence(pauseMs), each, silence(60)));
      };
      expect(twice(40)).toBe('55');
      expect(twice(10)).toBe('5');
    }
  });

  it('reject tones of -35 dBm0, single tones, and tones with loud harmonics', () => {
    expect(digitsIn(between(press({ digit: '5', levelDbm0: -35 })))).toBe('');
    for (const hz of [...LOW_HZ, ...HIGH_HZ]) expect(digitsIn(tone({ frequenciesHz: [hz], durationMs: 300 }))).toBe('');
    const harmonic = tone({ frequenciesHz: [2 * 1209], durationMs: 200, levelDbfs: -20 });
    const key = press({ digit: '1', durationMs: 200 });
    expect(digitsIn(between(key))).toBe('1');
    expect(digitsIn(between(key.map((sample, i) => sample + harmonic[i]!)))).toBe('');
  });

  it('accept a digit that follows another without a pause', () => {
    const all = [...'147'].map((digit) => press({ digit, durationMs: 100 }));
    expect(digitsIn(between(joined(...all)))).toBe('147');
  });

  it('also apply to linear samples', () => {
    const received: string[] = [];
    const detector = new DtmfDetector((digit) => received.push(digit));
    detector.addSamples(between(press({ digit: '#' })));
    expect(received).toEqual(['#']);
  });
});

describe('DTMF detector with packet loss', () => {
  function digitsAround(gap: (detector: DtmfDetector) => void): string {
    let received = '';
    const detector = new DtmfDetector((digit) => {
      received += digit;
    });
    detector.addSamples(press({ digit: '8', durationMs: 100 }));
    gap(detector);
    detector.addSamples(press({ digit: '8', durationMs: 100 }));
    detector.end();
    return received;
  }

  it('does not split a press when one or two packets are lost', () => {
    expect(digitsAround((detector) => detector.addLoss(160))).toBe('8');
    expect(digitsAround((detector) => detector.addLoss(320))).toBe('8');
  });

  it('splits presses when more are lost, or when a pause began or ended around the loss', () => {
    expect(digitsAround((detector) => detector.addLoss(480))).toBe('88');
    expect(
      digitsAround((detector) => {
        detector.addSamples(silence(10));
        detector.addLoss(320);
      }),
    ).toBe('88');
    expect(
      digitsAround((detector) => {
        detector.addLoss(320);
        detector.addSamples(silence(20));
      }),
    ).toBe('88');
  });

  it('splits presses when the speaker paused', () => {
    expect(digitsAround((detector) => detector.addSilence(320))).toBe('88');
  });
});

describe('DTMF detector with other sounds', () => {
  const options = { durationMs: 20_000, levelDbfs: -8, seed: 5 };
  const sounds = Object.entries({ ...SIGNALLING, ...NOISES, ...MUSIC }).filter(([name]) => !name.startsWith('DTMF'));

  it.each(sounds)('ignores %s', (_name, sound) => {
    expect(digitsIn(halved(sound(options)))).toBe('');
  });

  it.each(CODECS)('ignores ringback and hold music in %s', (codec) => {
    const presses: string[] = [];
    const detector = new DtmfDetector((digit) => presses.push(digit));
    for (const frame of [...ringbackFrames(codec), ...holdMusicFrames(codec)]) {
      detector.addG711(codec, frame, 0, frame.length);
    }
    detector.end();
    expect(presses).toEqual([]);
  });

  it('ignores human speech', () => {
    for (const { name, samples } of spokenUtterances()) {
      for (const gain of [1, 3]) {
        const louder = halved(samples).map((sample) => Math.max(-32_768, Math.min(32_767, gain * sample)));
        expect(digitsIn(louder), name).toBe('');
      }
    }
  });

  it('ignores a sung vowel whose octave is at the frequency of a key', () => {
    for (const hz of [750, 756, 760]) {
      const vowel = syntheticVowel({ sampleRateHz: 8000, seconds: 1, hzAt: () => hz, vowel: 'e' });
      expect(digitsIn(Int16Array.from(vowel, (sample) => 20_000 * sample))).toBe('');
    }
  });

  describe('DTMF detector with synthesised speech', () => {
    let speech: Int16Array<ArrayBuffer>;
    beforeAll(async () => {
      await using speakers = await Speakers.start();
      const voices = [...TUNING.voices, ...HELD_OUT.voices];
      const texts = [...TUNING.machine, ...HELD_OUT.machine].map((parts) => parts.join(' '));
      const said: Int16Array[] = [];
      // Every voice and every text, but not every pair, since synthesis is slow.
      const pairs = voices.flatMap((voice, v) => texts.map((text, t) => ({ voice, text, index: v + t })));
      const spokenPairs = pairs.filter(({ index }) => fc.isDeep || index % 2 === 0);
      for (const { voice, text } of spokenPairs) said.push(await speakers.say(text, voice));
      speech = joined(...said);
    }, 120_000);

    it('ignores minutes of synthesised voices at every pitch', () => {
      expect(speech.length / 8000).toBeGreaterThan(300);
      for (const codec of CODECS) expect(digitsIn(speech, codec)).toBe('');
    });
  });
});
