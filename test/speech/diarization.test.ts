import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../runtime/seeded-random.ts';
import { createDiarizer, type SpeakerEmbedder } from '../../speech/diarization/diarizer.ts';
import { cepstraOf } from '../../speech/diarization/mfcc.ts';
import * as fc from '../properties.ts';
import { ANY_NUMBER, alternating, atSpeed, diarizeWords, errorRate, namesIn, samplesOf } from './conversation.ts';

const READER = samplesOf('austen-reader');
const PLAYER = samplesOf('card-player');
/** The same recording with a longer vocal tract. */
const TALLER_READER = READER.map((samples) => atSpeed(samples, 0.87));

describe('diarisation of a recording', () => {
  it('separates two speakers without a given number', async () => {
    const labelled = await diarizeWords(alternating({ reader: READER, player: PLAYER }), { mode: 'batch' });
    expect(namesIn(labelled)).toEqual(['speaker_1', 'speaker_2']);
    expect(errorRate(labelled)).toBeLessThan(0.1);
  });

  it('separates voices that differ in vocal tract only', async () => {
    const labelled = await diarizeWords(alternating({ reader: READER, taller: TALLER_READER }), { mode: 'batch' });
    expect(namesIn(labelled)).toEqual(['speaker_1', 'speaker_2']);
    expect(errorRate(labelled)).toBeLessThan(0.1);
  });

  it('finds speaker changes within one long utterance', async () => {
    const one = [alternating({ reader: READER, taller: TALLER_READER }).flat()];
    expect(errorRate(await diarizeWords(one, { mode: 'batch', minSpeakers: 2, maxSpeakers: 2 }))).toBeLessThan(0.1);
  });

  it('assigns one speaker to a single voice', async () => {
    for (const voice of [READER, PLAYER, TALLER_READER]) {
      expect(namesIn(await diarizeWords(alternating({ voice }), { mode: 'batch' }))).toEqual(['speaker_1']);
    }
  });

  it('respects minimum and maximum of speakers', async () => {
    const utterances = alternating({ reader: READER, player: PLAYER, taller: TALLER_READER });
    for (const count of [1, 2, 4]) {
      const labelled = await diarizeWords(utterances, { mode: 'batch', minSpeakers: count, maxSpeakers: count });
      expect(namesIn(labelled), `${count}`).toHaveLength(count);
    }
    const three = await diarizeWords(utterances, { mode: 'batch', minSpeakers: 3, maxSpeakers: 3 });
    expect(errorRate(three)).toBeLessThan(0.1);
  });

  it('recognises a speaker beyond the turns that it compares', async () => {
    const [short, other] = [PLAYER[0]!, READER[1]!.subarray(0, 24_000)];
    const utterances = Array.from({ length: 262 }, (_, index) => [
      index % 2 === 0 ? { who: 'player', samples: short } : { who: 'reader', samples: other },
    ]);
    const labelled = await diarizeWords(utterances, { mode: 'batch' });
    expect(errorRate(labelled)).toBe(0);
  });
});

describe('diarisation of a live stream', () => {
  it('labels words immediately and reuses the label of a returning voice', async () => {
    const utterances = alternating({ reader: READER, player: PLAYER });
    const labelled = await diarizeWords([...utterances, ...utterances], {
      mode: 'live',
      minSpeakers: 2,
      maxSpeakers: 2,
    });
    expect(namesIn(labelled)).toEqual(['speaker_1', 'speaker_2']);
    expect(errorRate(labelled)).toBeLessThan(0.1);
  });

  it('keeps one label for one voice', async () => {
    for (const voice of [READER, PLAYER]) {
      expect(namesIn(await diarizeWords(alternating({ voice }), { mode: 'live' }))).toEqual(['speaker_1']);
    }
  });

  it('respects the maximum of speakers', async () => {
    const utterances = alternating({ reader: READER, player: PLAYER, taller: TALLER_READER });
    const labelled = await diarizeWords(utterances, { mode: 'live', minSpeakers: 2, maxSpeakers: 2 });
    expect(namesIn(labelled).length).toBeLessThanOrEqual(2);
  });

  it('labels every word for any audio', async () => {
    const random = seededRandom(7);
    const noise = Int16Array.from({ length: 16_000 }, () => (random() - 0.5) * 60_000);
    const odd = [
      new Int16Array(0),
      new Int16Array(10),
      new Int16Array(16_000),
      noise,
      new Int16Array(8_000).fill(-32_768),
    ];
    const labelled = await diarizeWords(
      odd.map((samples) => [{ who: 'nobody', samples }]),
      { mode: 'live' },
    );
    expect(labelled.length).toBeGreaterThan(0);
    expect(labelled.every(({ word }) => /^speaker_\d+$/.test(word.speaker ?? ''))).toBe(true);
  });
});

describe('diarisation with a speaker model', () => {
  /** Simulates a perfect model that embeds the level. */
  const byLevel: SpeakerEmbedder = {
    embed: async (samples) => {
      const mean = samples.reduce((sum, sample) => sum + Math.abs(sample), 0) / samples.length;
      return Float32Array.of(mean > 3_000 ? 1 : 0, mean > 3_000 ? 0 : 1, 0.1);
    },
  };
  const loud = (samples: Int16Array, level: number) => samples.map((sample) => Math.sign(sample) * level);

  it('follows the model', async () => {
    const utterances = alternating({
      loud: READER.map((samples) => loud(samples, 8_000)),
      quiet: READER.map((samples) => loud(samples, 800)),
    });
    for (const mode of ['live', 'batch'] as const) {
      expect(errorRate(await diarizeWords(utterances, { mode, embedder: byLevel }))).toBe(0);
    }
    expect(createDiarizer({ ...ANY_NUMBER, mode: 'live', embedder: byLevel }).method).toBe('embeddings');
    expect(createDiarizer({ ...ANY_NUMBER, mode: 'live' }).method).toBe('basic');
  });

  it('assigns turns without an embedding to the previous speaker', async () => {
    const answers = [Float32Array.of(1, 0), null, Float32Array.of(Number.NaN, 1), Float32Array.of(0, 0)];
    const embedder: SpeakerEmbedder = { embed: async () => answers.shift() ?? null };
    const labelled = await diarizeWords(alternating({ reader: READER, player: PLAYER }), { mode: 'live', embedder });
    expect(namesIn(labelled)).toEqual(['speaker_1']);
  });
});

describe('diarisation features', () => {
  it('do not depend on the level', () => {
    const loud = cepstraOf(READER[0]!).values;
    const quiet = cepstraOf(READER[0]!.map((sample) => sample / 2)).values;
    const differences = loud.map((value, index) => Math.abs(value - quiet[index]!)).toSorted();
    expect(differences[Math.floor(differences.length * 0.95)]).toBeLessThan(0.2);
  });

  it('stay finite for any samples', () => {
    fc.assert(
      fc.property(fc.int16Array({ maxLength: 2_000 }), (samples) => {
        expect(cepstraOf(samples).values.every(Number.isFinite)).toBe(true);
      }),
      { numRuns: 30 },
    );
  });
});
