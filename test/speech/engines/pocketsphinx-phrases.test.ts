import { describe, expect, it } from 'vitest';
import type { DecodedSegment, Decoder } from '../../../speech/engines/pocketsphinx/decoder.ts';
import type { Band } from '../../../speech/engines/pocketsphinx/front-end.ts';
import { PocketsphinxRecognizer } from '../../../speech/engines/pocketsphinx/recognizer.ts';

type Step = 'start' | 'process' | 'end';

/** Recognises each second of an utterance as a word of 0.9 s: its number in the utterance. */
class CountingDecoder implements Decoder {
  readonly steps: Step[] = [];
  readonly name: string;
  #samples = 0;

  constructor(name: string) {
    this.name = name;
  }

  startUtterance(): void {
    this.steps.push('start');
    this.#samples = 0;
  }

  setCepstralMean(): void {}

  process(samples: Int16Array): void {
    if (this.steps.at(-1) !== 'process') this.steps.push('process');
    this.#samples += samples.length;
  }

  endUtterance(): void {
    this.steps.push('end');
  }

  segments(): DecodedSegment[] {
    return Array.from({ length: Math.floor(this.#samples / 16_000) }, (_, second) => ({
      word: `${this.name}${second}`,
      startFrame: 100 * second,
      endFrame: 100 * second + 89,
      logPosterior: 0,
    }));
  }

  close(): void {}
}

async function recognizerWith() {
  const decoders: CountingDecoder[] = [];
  const recognizer = await PocketsphinxRecognizer.create({
    model: 'pocketsphinx/en-us',
    createDecoder: async (_: Band, keywords) => {
      const decoder = new CountingDecoder(keywords.length > 0 ? 'boosted' : 'plain');
      decoders.push(decoder);
      return decoder;
    },
  });
  return { recognizer, decoders };
}

const LIVE = { language: 'en', keywords: [], isLive: true };
const seconds = (count: number) => new Int16Array(16_000 * count);

describe('PocketSphinx in a pause', () => {
  it('concludes what was said, so that nothing is left to decode at the end', async () => {
    const { recognizer, decoders } = await recognizerWith();
    await recognizer.begin(LIVE);
    await recognizer.write(seconds(3));
    await recognizer.pause();
    const stepsBefore = decoders.flatMap(({ steps }) => steps);
    expect(stepsBefore).toEqual(['start', 'process', 'end']);
    const { text } = await recognizer.finish();
    expect(text).toBe('plain0 plain1 plain2');
    expect(decoders.flatMap(({ steps }) => steps)).toEqual(stepsBefore);
  });

  it('decodes an utterance that was too short to begin with', async () => {
    const { recognizer, decoders } = await recognizerWith();
    await recognizer.begin(LIVE);
    await recognizer.write(seconds(1));
    expect(decoders.flatMap(({ steps }) => steps)).toEqual([]);
    await recognizer.pause();
    expect(decoders.flatMap(({ steps }) => steps)).toEqual(['start', 'process', 'end']);
    expect((await recognizer.finish()).text).toBe('plain0');
  });

  it('returns the words of all phrases, in time of the utterance', async () => {
    const { recognizer } = await recognizerWith();
    await recognizer.begin(LIVE);
    await recognizer.write(seconds(2));
    await recognizer.pause();
    await recognizer.write(seconds(0.5));
    expect((await recognizer.hypothesis())?.text).toBe('plain0 plain1');
    await recognizer.write(seconds(1));
    const expected = [
      ['plain0', 0, 900],
      ['plain1', 1000, 1900],
      ['plain0', 2000, 2900],
    ];
    const timesOf = (words: readonly { word: string; startMs: number; endMs: number }[]) =>
      words.map(({ word, startMs, endMs }) => [word, startMs, endMs]);
    expect(timesOf((await recognizer.hypothesis())!.words)).toEqual(expected);
    const { words, confidence } = await recognizer.finish();
    expect(timesOf(words)).toEqual(expected);
    expect(confidence).toBe(1);
  });

  it('waits for two seconds of speech before it decodes the phrase after a short one', async () => {
    const { recognizer, decoders } = await recognizerWith();
    await recognizer.begin(LIVE);
    await recognizer.write(seconds(1));
    await recognizer.pause();
    await recognizer.write(seconds(0.9));
    expect(decoders.flatMap(({ steps }) => steps)).toEqual(['start', 'process', 'end']);
    await recognizer.write(seconds(0.1));
    expect(decoders.flatMap(({ steps }) => steps)).toEqual(['start', 'process', 'end', 'start', 'process']);
  });

  it('decodes each phrase without the boost by itself', async () => {
    const { recognizer, decoders } = await recognizerWith();
    const keywords = [{ term: 'boosted0', weight: 1 }];
    await recognizer.begin({ ...LIVE, keywords });
    for (const _ of [1, 2]) {
      await recognizer.write(seconds(2));
      await recognizer.pause();
    }
    const { words } = await recognizer.finish();
    expect(words.map(({ word, original }) => [word, original])).toEqual([
      ['boosted0', 'plain0'],
      ['boosted1', null],
      ['boosted0', 'plain0'],
      ['boosted1', null],
    ]);
    const plain = decoders.filter(({ name, steps }) => name === 'plain' && steps.length > 0);
    expect(plain.map(({ steps }) => steps)).toEqual([['start', 'process', 'end', 'start', 'process', 'end']]);
  });

  it('forgets an utterance that is cancelled in the pause or after it', async () => {
    const { recognizer, decoders } = await recognizerWith();
    for (const rest of [0, 3]) {
      await recognizer.begin(LIVE);
      await recognizer.write(seconds(2));
      await recognizer.pause();
      await recognizer.write(seconds(rest));
      await recognizer.cancel();
    }
    const steps = decoders.flatMap((decoder) => decoder.steps);
    expect(steps.filter((step) => step === 'start')).toHaveLength(3);
    expect(steps.filter((step) => step === 'end')).toHaveLength(3);
    await recognizer.begin(LIVE);
    await recognizer.write(seconds(2));
    expect((await recognizer.finish()).text).toBe('plain0 plain1');
  });
});
