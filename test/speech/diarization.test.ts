import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../runtime/seeded-random.ts';
import { createDiarizer, type SpeakerEmbedder } from '../../speech/diarization/diarizer.ts';
import { cepstraOf } from '../../speech/diarization/mfcc.ts';
import * as fc from '../properties.ts';
import { ANY_NUMBER, alternating, atSpeed, errorRate, hear, namesIn, samplesOf } from './conversation.ts';

const READER = samplesOf('austen-reader');
const PLAYER = samplesOf('card-player');
/** The same sentences out of a longer throat, on the same recording. */
const TALLER_READER = READER.map((samples) => atSpeed(samples, 0.87));

describe('diarisation of a recording', () => {
  it('tells two people apart, whose number nobody said', async () => {
    const heard = await hear(alternating({ reader: READER, player: PLAYER }), { mode: 'batch' });
    expect(namesIn(heard)).toEqual(['speaker_1', 'speaker_2']);
    expect(errorRate(heard)).toBeLessThan(0.1);
  });

  it('tells voices apart that differ in nothing but the voice', async () => {
    const heard = await hear(alternating({ reader: READER, taller: TALLER_READER }), { mode: 'batch' });
    expect(namesIn(heard)).toEqual(['speaker_1', 'speaker_2']);
    expect(errorRate(heard)).toBeLessThan(0.1);
  });

  it('finds who spoke when within one long utterance', async () => {
    const one = [alternating({ reader: READER, taller: TALLER_READER }).flat()];
    expect(errorRate(await hear(one, { mode: 'batch', minSpeakers: 2, maxSpeakers: 2 }))).toBeLessThan(0.1);
  });

  it('does not make two of one', async () => {
    for (const voice of [READER, PLAYER, TALLER_READER]) {
      expect(namesIn(await hear(alternating({ voice }), { mode: 'batch' }))).toEqual(['speaker_1']);
    }
  });

  it('finds as many voices as there must be, and no more than there may be', async () => {
    const utterances = alternating({ reader: READER, player: PLAYER, taller: TALLER_READER });
    for (const count of [1, 2, 4]) {
      const heard = await hear(utterances, { mode: 'batch', minSpeakers: count, maxSpeakers: count });
      expect(namesIn(heard), `${count}`).toHaveLength(count);
    }
    const three = await hear(utterances, { mode: 'batch', minSpeakers: 3, maxSpeakers: 3 });
    expect(errorRate(three)).toBeLessThan(0.1);
  });

  it('remembers who spoke also beyond the turns it compares', async () => {
    const [short, other] = [PLAYER[0]!, READER[1]!.subarray(0, 24_000)];
    const utterances = Array.from({ length: 262 }, (_, index) => [
      index % 2 === 0 ? { who: 'player', samples: short } : { who: 'reader', samples: other },
    ]);
    const heard = await hear(utterances, { mode: 'batch' });
    expect(errorRate(heard)).toBe(0);
  });
});

describe('diarisation of a live stream', () => {
  it('names who spoke at once, and the same voice by the same name later', async () => {
    const utterances = alternating({ reader: READER, player: PLAYER });
    const heard = await hear([...utterances, ...utterances], { mode: 'live', minSpeakers: 2, maxSpeakers: 2 });
    expect(namesIn(heard)).toEqual(['speaker_1', 'speaker_2']);
    expect(errorRate(heard)).toBeLessThan(0.1);
  });

  it('keeps to one name for one voice', async () => {
    for (const voice of [READER, PLAYER]) {
      expect(namesIn(await hear(alternating({ voice }), { mode: 'live' }))).toEqual(['speaker_1']);
    }
  });

  it('never names more speakers than there may be', async () => {
    const utterances = alternating({ reader: READER, player: PLAYER, taller: TALLER_READER });
    const heard = await hear(utterances, { mode: 'live', minSpeakers: 2, maxSpeakers: 2 });
    expect(namesIn(heard).length).toBeLessThanOrEqual(2);
  });

  it('names every word, whatever there was to hear', async () => {
    const random = seededRandom(7);
    const noise = Int16Array.from({ length: 16_000 }, () => (random() - 0.5) * 60_000);
    const odd = [
      new Int16Array(0),
      new Int16Array(10),
      new Int16Array(16_000),
      noise,
      new Int16Array(8_000).fill(-32_768),
    ];
    const heard = await hear(
      odd.map((samples) => [{ who: 'nobody', samples }]),
      { mode: 'live' },
    );
    expect(heard.length).toBeGreaterThan(0);
    expect(heard.every(({ word }) => /^speaker_\d+$/.test(word.speaker ?? ''))).toBe(true);
  });
});

describe('diarisation with a speaker model', () => {
  /** Stands for a model: as sure as can be, by how loud somebody is. */
  const byLevel: SpeakerEmbedder = {
    embed: async (samples) => {
      const mean = samples.reduce((sum, sample) => sum + Math.abs(sample), 0) / samples.length;
      return Float32Array.of(mean > 3_000 ? 1 : 0, mean > 3_000 ? 0 : 1, 0.1);
    },
  };
  const loud = (samples: Int16Array, level: number) => samples.map((sample) => Math.sign(sample) * level);

  it('goes by the model', async () => {
    const utterances = alternating({
      loud: READER.map((samples) => loud(samples, 8_000)),
      quiet: READER.map((samples) => loud(samples, 800)),
    });
    for (const mode of ['live', 'batch'] as const) {
      expect(errorRate(await hear(utterances, { mode, embedder: byLevel }))).toBe(0);
    }
    expect(createDiarizer({ ...ANY_NUMBER, mode: 'live', embedder: byLevel }).method).toBe('embeddings');
    expect(createDiarizer({ ...ANY_NUMBER, mode: 'live' }).method).toBe('basic');
  });

  it('leaves turns to those before that the model makes nothing of', async () => {
    const answers = [Float32Array.of(1, 0), null, Float32Array.of(Number.NaN, 1), Float32Array.of(0, 0)];
    const embedder: SpeakerEmbedder = { embed: async () => answers.shift() ?? null };
    const heard = await hear(alternating({ reader: READER, player: PLAYER }), { mode: 'live', embedder });
    expect(namesIn(heard)).toEqual(['speaker_1']);
  });
});

describe('what diarisation compares', () => {
  it('does not depend on how loud somebody speaks', () => {
    const loud = cepstraOf(READER[0]!).values;
    const quiet = cepstraOf(READER[0]!.map((sample) => sample / 2)).values;
    const differences = loud.map((value, index) => Math.abs(value - quiet[index]!)).toSorted();
    expect(differences[Math.floor(differences.length * 0.95)]).toBeLessThan(0.2);
  });

  it('is finite for any samples', () => {
    fc.assert(
      fc.property(fc.int16Array({ maxLength: 2_000 }), (samples) => {
        expect(cepstraOf(samples).values.every(Number.isFinite)).toBe(true);
      }),
      { numRuns: 30 },
    );
  });
});
