import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { errorRate, sumOfErrors, type WordErrors, wordErrors } from '../../bench/word-error-rate.ts';
import type { Recognition } from '../../machines/utterances.ts';
import type { Recognizer, UtteranceOptions } from '../../speech/recognizer.ts';

export interface ConformingRecognizer {
  /** Such as the engine and its model. */
  name: string;
  load: () => Promise<Recognizer>;
  /** In a language it understands. The first is what most of this is tried on: some seconds, several words. */
  spoken: readonly { samples: Int16Array<ArrayBuffer>; text: string; language: string }[];
  /** Of all that is spoken: loosely, since accuracy is for the bench to tell. */
  mostWordErrorRate: number;
  /** ISO 639-1 of one that it does not understand; null when it claims to understand all. */
  unknownLanguage: string | null;
}

const SAMPLES_PER_MS = 16;
const BLOCK_SAMPLES = 320;

/** What every recognizer promises, whatever its engine: call it in a test file of the engine. */
export function itIsARecognizer(conforming: ConformingRecognizer): void {
  describe(`a recognizer: ${conforming.name}`, { timeout: 120_000 }, () => {
    const first = conforming.spoken[0]!;
    const whole: UtteranceOptions = { language: first.language, keywords: [], wantsHypotheses: false };
    const hypothesising: UtteranceOptions = { ...whole, wantsHypotheses: true };
    let recognizer: Recognizer;

    beforeAll(async () => {
      recognizer = await conforming.load();
    });

    afterAll(() => recognizer?.close());

    it('understands most of what is said', async () => {
      const errors: WordErrors[] = [];
      for (const { samples, text, language } of conforming.spoken) {
        const recognition = await recognise(recognizer, { ...whole, language }, samples, samples.length);
        errors.push(wordErrors(text, recognition.text));
      }
      expect(errorRate(sumOfErrors(errors))).toBeLessThan(conforming.mostWordErrorRate);
    });

    it('tells words in order, inside the utterance, and the text that they make', async () => {
      const { text, words, confidence, language } = await recognise(recognizer, whole, first.samples);
      expect(words.length).toBeGreaterThan(1);
      expect(words.map(({ word }) => word).join(' ')).toBe(text);
      const timesMs = words.flatMap(({ startMs, endMs }) => [startMs, endMs]);
      expect(timesMs).toEqual(timesMs.toSorted((one, other) => one - other));
      expect(timesMs.at(-1)).toBeLessThanOrEqual(first.samples.length / SAMPLES_PER_MS);
      // What is said takes up most of the time.
      expect(timesMs.at(-1)! - timesMs[0]!).toBeGreaterThan(first.samples.length / SAMPLES_PER_MS / 3);
      const confidences = words.map((word) => word.confidence);
      const { hasConfidence } = recognizer.description;
      expect(confidences.every((each) => (each === null ? !hasConfidence : each >= 0 && each <= 1))).toBe(true);
      expect(confidence === null).toBe(!hasConfidence);
      expect(language).toBe(first.language);
    });

    it('understands the same however the samples are written', async () => {
      const atOnce = await recognise(recognizer, whole, first.samples, first.samples.length);
      // A prime: never in step with any frame.
      const inPieces = await recognise(recognizer, whole, first.samples, 1009);
      expect(inPieces.text).toBe(atOnce.text);
      expect(inPieces.words.map(({ startMs }) => startMs)).toEqual(atOnce.words.map(({ startMs }) => startMs));
    });

    it('has a hypothesis while the utterance goes on, if it says so', async () => {
      await recognizer.begin(hypothesising);
      expect(await recognizer.hypothesis()).toBeNull();
      const texts = new Set<string>();
      for (const block of blocksOf(first.samples, first.samples.length / 5)) {
        await recognizer.write(block);
        const hypothesis = await recognizer.hypothesis();
        if (hypothesis === null) continue;
        texts.add(hypothesis.text);
        expect(hypothesis.words.map(({ word }) => word).join(' ')).toBe(hypothesis.text);
      }
      const { text } = await recognizer.finish();
      expect(text).not.toBe('');
      if (recognizer.description.streams) expect(texts.size).toBeGreaterThan(0);
      else expect(texts.size).toBe(0);
    });

    it('makes nothing up where nothing was said', async () => {
      const nothings = { 'no samples': 0, 'less than a frame': 50, silence: 16_000 };
      for (const samples of Object.values(nothings)) {
        for (const options of [whole, hypothesising]) {
          const { text, words } = await recognise(recognizer, options, new Int16Array(samples));
          expect({ text, words }).toEqual({ text: '', words: [] });
        }
      }
    });

    it('remembers nothing of what it heard before', async () => {
      const { text } = await recognise(recognizer, whole, first.samples);
      const loud = conforming.spoken.at(-1)!.samples.map((sample) => Math.max(-32_768, Math.min(32_767, sample * 20)));
      await recognise(recognizer, hypothesising, loud);
      expect((await recognise(recognizer, whole, first.samples)).text).toBe(text);
    });

    it('forgets what is cancelled', async () => {
      const { text } = await recognise(recognizer, whole, first.samples);
      for (const options of [whole, hypothesising]) {
        await recognizer.begin(options);
        await recognizer.write(first.samples.slice(0, first.samples.length / 2));
        await recognizer.cancel();
        await recognizer.cancel();
      }
      expect((await recognise(recognizer, whole, first.samples)).text).toBe(text);
    });

    it.skipIf(conforming.unknownLanguage === null)('refuses a language that it does not understand', async () => {
      await expect(recognizer.begin({ ...whole, language: conforming.unknownLanguage })).rejects.toMatchObject({
        name: 'RecognizerError',
        code: 'unsupported_language',
        retryable: false,
      });
      expect((await recognise(recognizer, whole, first.samples)).text).not.toBe('');
    });
  });
}

async function recognise(
  recognizer: Recognizer,
  options: UtteranceOptions,
  samples: Int16Array<ArrayBuffer>,
  blockSamples = BLOCK_SAMPLES,
): Promise<Recognition> {
  await recognizer.begin(options);
  for (const block of blocksOf(samples, blockSamples)) await recognizer.write(block);
  return recognizer.finish();
}

/** Copies, which whoever is given them may keep. */
function* blocksOf(samples: Int16Array<ArrayBuffer>, blockSamples: number): Generator<Int16Array<ArrayBuffer>> {
  for (let start = 0; start < samples.length; start += blockSamples) yield samples.slice(start, start + blockSamples);
}
