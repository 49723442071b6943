import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { errorRate, sumOfErrors, type WordErrors, wordErrors } from '../../bench/word-error-rate.ts';
import type { Recognition } from '../../machines/utterances.ts';
import type { Recognizer, UtteranceOptions } from '../../speech/recognizer.ts';

export interface ConformingRecognizer {
  name: string;
  load: () => Promise<Recognizer>;
  /** The loader closes it, because other tests use it too. */
  isShared?: boolean;
  /** Utterances in supported languages; most tests use the first, several words in some seconds. */
  spoken: readonly { samples: Int16Array<ArrayBuffer>; text: string; language: string }[];
  /** Over all utterances. A loose limit, since the benchmark measures accuracy. */
  mostWordErrorRate: number;
  /** Unsupported language (ISO 639-1), or null if all are supported. */
  unknownLanguage: string | null;
}

const SAMPLES_PER_MS = 16;
/** Silence between two utterances that one test speaks in one stream. */
export const PAUSE_SAMPLES = SAMPLES_PER_MS * 500;
const BLOCK_SAMPLES = 320;

export function itIsARecognizer(conforming: ConformingRecognizer): void {
  describe(`recognizer ${conforming.name}`, { timeout: 120_000 }, () => {
    const first = conforming.spoken[0]!;
    const whole: UtteranceOptions = { language: first.language, keywords: [], isLive: false };
    const hypothesising: UtteranceOptions = { ...whole, isLive: true };
    let recognizer: Recognizer;
    let expected: Recognition;

    beforeAll(async () => {
      recognizer = await conforming.load();
      expected = await recognise(recognizer, whole, first.samples);
    });

    afterAll(() => (conforming.isShared ? undefined : recognizer?.close()));

    it('recognises most words', async () => {
      const errors: WordErrors[] = [];
      for (const { samples, text, language } of conforming.spoken) {
        const recognition = await recognise(recognizer, { ...whole, language }, samples, samples.length);
        errors.push(wordErrors(text, recognition.text));
      }
      expect(errorRate(sumOfErrors(errors))).toBeLessThan(conforming.mostWordErrorRate);
    });

    it('returns words in order, inside the utterance, that match the text', () => {
      const { text, words, confidence, language } = expected;
      expect(words.length).toBeGreaterThan(1);
      expect(words.map(({ word }) => word).join(' ')).toBe(text);
      const timesMs = words.flatMap(({ startMs, endMs }) => [startMs, endMs]);
      expect(timesMs).toEqual(timesMs.toSorted((one, other) => one - other));
      expect(timesMs.at(-1)).toBeLessThanOrEqual(first.samples.length / SAMPLES_PER_MS);
      // The speech fills most of the utterance.
      expect(timesMs.at(-1)! - timesMs[0]!).toBeGreaterThan(first.samples.length / SAMPLES_PER_MS / 3);
      const confidences = words.map((word) => word.confidence);
      const { hasConfidence } = recognizer.description;
      expect(confidences.every((each) => (each === null ? !hasConfidence : each >= 0 && each <= 1))).toBe(true);
      expect(confidence === null).toBe(!hasConfidence);
      expect(language).toBe(first.language);
    });

    it('recognises the same words for any block size', async () => {
      // A prime number, so that blocks never align with frames.
      const inPieces = await recognise(recognizer, whole, first.samples, 1009);
      expect(inPieces.text).toBe(expected.text);
      expect(inPieces.words.map(({ startMs }) => startMs)).toEqual(expected.words.map(({ startMs }) => startMs));
    });

    it('returns hypotheses during the utterance, if supported', async () => {
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

    it('recognises what is said before and after a pause, in order', async () => {
      const { samples } = first;
      const spoken = await recognise(recognizer, hypothesising, samples);
      await recognizer.begin(hypothesising);
      await recognizer.write(samples.slice());
      await recognizer.pause?.();
      const hypothesis = await recognizer.hypothesis();
      if (hypothesis !== null) expect(hypothesis.text).toBe(spoken.text);
      await recognizer.write(new Int16Array(PAUSE_SAMPLES));
      await recognizer.write(samples.slice());
      await recognizer.pause?.();
      const { words } = await recognizer.finish();
      const lengthMs = samples.length / SAMPLES_PER_MS;
      const isBefore = ({ startMs }: { startMs: number }) => startMs < lengthMs;
      expect(words.filter(isBefore).length).toBeGreaterThan(1);
      expect(words.filter((word) => !isBefore(word)).length).toBeGreaterThan(1);
      const timesMs = words.flatMap(({ startMs, endMs }) => [startMs, endMs]);
      expect(timesMs).toEqual(timesMs.toSorted((one, other) => one - other));
      expect(timesMs.at(-1)).toBeLessThanOrEqual(2 * lengthMs + 500);
    });

    it('returns no words for silence', async () => {
      const nothings = { 'no samples': 0, 'less than a frame': 50, silence: 16_000 };
      for (const samples of Object.values(nothings)) {
        for (const options of [whole, hypothesising]) {
          const { text, words } = await recognise(recognizer, options, new Int16Array(samples));
          expect({ text, words }).toEqual({ text: '', words: [] });
        }
      }
    });

    it('keeps no state of earlier utterances', async () => {
      // Half a second, since decoding distorted speech is slow.
      const end = conforming.spoken.at(-1)!.samples.slice(-SAMPLES_PER_MS * 500);
      await recognise(
        recognizer,
        hypothesising,
        end.map((sample) => Math.max(-32_768, Math.min(32_767, sample * 20))),
      );
      expect((await recognise(recognizer, whole, first.samples)).text).toBe(expected.text);
    });

    it('drops cancelled utterances', async () => {
      for (const options of [whole, hypothesising]) {
        await recognizer.begin(options);
        await recognizer.write(first.samples.slice(0, first.samples.length / 2));
        await recognizer.cancel();
        await recognizer.cancel();
      }
      expect((await recognise(recognizer, whole, first.samples)).text).toBe(expected.text);
    });

    it.skipIf(conforming.unknownLanguage === null)('rejects unsupported languages', async () => {
      await expect(recognizer.begin({ ...whole, language: conforming.unknownLanguage })).rejects.toMatchObject({
        name: 'RecognizerError',
        code: 'unsupported_language',
        retryable: false,
      });
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

/** Yields copies, which a recognizer may keep. */
function* blocksOf(samples: Int16Array<ArrayBuffer>, blockSamples: number): Generator<Int16Array<ArrayBuffer>> {
  for (let start = 0; start < samples.length; start += blockSamples) yield samples.slice(start, start + blockSamples);
}
