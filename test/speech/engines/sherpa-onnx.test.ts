import { cp, mkdtemp, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { SpawnedRecognizer } from '../../../speech/engine-process/spawned-recognizer.ts';
import { createSherpaEngine } from '../../../speech/engines/sherpa-onnx/sherpa-engine.ts';
import type { Recognizer, UtteranceOptions } from '../../../speech/recognizer.ts';
import { itIsARecognizer } from '../recognizer-conformance.ts';
import { WHISPERED, writeWhisper } from '../whisper-model.ts';
import {
  WHISTLED_TOKENS,
  whistle,
  whistledAtMs,
  writeOfflineCtc,
  writeOfflineTransducer,
  writePunctuation,
  writeStreamingCtc,
  writeStreamingTransducer,
} from '../whistled-models.ts';

const SENTENCE = ['▁go', '▁for', 'ward', '▁tan', '▁me', 'ters'];
const UTTERANCE: UtteranceOptions = { language: 'en', keywords: [], isLive: false };
/** One output frame covers four frames of 10 ms, and tones fade in. */
const TIME_TOLERANCE_MS = 60;

let modelsDir: string;
/** Recognizers by folder and model: loading a process takes time. */
const loaded = new Map<string, Promise<Recognizer>>();

beforeAll(async () => {
  modelsDir = await mkdtemp(join(tmpdir(), 'tandem-sherpa-'));
  await writeStreamingCtc(join(modelsDir, 'stt/ctc-streaming-en'));
  await writeOfflineCtc(join(modelsDir, 'stt/ctc-whole-en'));
  await writeStreamingTransducer(join(modelsDir, 'stt/transducer-en'));
  await writeOfflineTransducer(join(modelsDir, 'stt/transducer-whole-en'));
});

afterAll(async () => {
  await Promise.all([...loaded.values()].map(async (recognizer) => (await recognizer).close()));
  await rm(modelsDir, { recursive: true });
});

async function loadAnew(model: string, folder = modelsDir): Promise<Recognizer> {
  const engine = createSherpaEngine({ modelsDir: folder, processes: 1 });
  const description = (await engine.describe()).find((described) => described.model === model);
  return await engine.load(description!);
}

function load(model: string, folder = modelsDir): Promise<Recognizer> {
  const key = join(folder, model);
  const recognizer = loaded.get(key) ?? loadAnew(model, folder);
  loaded.set(key, recognizer);
  return recognizer;
}

async function recognise(recognizer: Recognizer, options: UtteranceOptions = UTTERANCE, samples = whistle(SENTENCE)) {
  await recognizer.begin(options);
  for (let start = 0; start < samples.length; start += 1600) await recognizer.write(samples.slice(start, start + 1600));
  return await recognizer.finish();
}

describe('sherpa-onnx models', () => {
  it('derive their capabilities from their files', async () => {
    const engine = createSherpaEngine({ modelsDir, processes: 3 });
    expect(engine.maxInstances).toBe(3);
    const common = { engine: 'sherpa-onnx', languages: ['en'], detectsLanguage: false };
    const streaming = { ...common, streams: true, utterancesAtOnce: 4 };
    expect(await engine.describe()).toEqual([
      { ...streaming, model: 'ctc-streaming-en', boostsKeywords: false, hasConfidence: false },
      { ...common, model: 'ctc-whole-en', streams: false, boostsKeywords: false, hasConfidence: false },
      { ...streaming, model: 'transducer-en', boostsKeywords: true, hasConfidence: true },
      { ...common, model: 'transducer-whole-en', streams: false, boostsKeywords: true, hasConfidence: true },
    ]);
  });

  it('do not exist without the folder', async () => {
    const engine = createSherpaEngine({ modelsDir: join(modelsDir, 'nowhere'), processes: 1 });
    expect(await engine.describe()).toEqual([]);
  });
});

describe.each(['ctc-streaming-en', 'ctc-whole-en', 'transducer-en', 'transducer-whole-en'])('%s', (model) => {
  itIsARecognizer({
    name: `sherpa-onnx/${model}`,
    load: () => load(model),
    isShared: true,
    spoken: [
      {
        samples: whistle([...SENTENCE, '▁go', '▁me', 'ters']),
        text: 'go forward tan meters go meters',
        language: 'en',
      },
      { samples: whistle(['▁me', 'ters']), text: 'meters', language: 'en' },
    ],
    mostWordErrorRate: 0.01,
    unknownLanguage: 'fr',
  });

  it('joins tokens to words with their times', async () => {
    const { text, words, model: name } = await recognise(await load(model));
    expect({ text, name }).toEqual({ text: 'go forward tan meters', name: `sherpa-onnx/${model}` });
    expect(words.map(({ word }) => word)).toEqual(['go', 'forward', 'tan', 'meters']);
    for (const [index, firstToken] of [0, 1, 3, 4].entries()) {
      expect(Math.abs(words[index]!.startMs - whistledAtMs(firstToken))).toBeLessThanOrEqual(TIME_TOLERANCE_MS);
      expect(words[index]!.endMs).toBeGreaterThan(words[index]!.startMs);
    }
  });
});

describe('streaming model', () => {
  it('returns hypotheses', async () => {
    const recognizer = await load('ctc-streaming-en');
    await recognizer.begin({ ...UTTERANCE, isLive: true });
    expect(await recognizer.hypothesis()).toBeNull();
    await recognizer.write(whistle(['▁go', '▁for', 'ward', '▁me']));
    const hypothesis = await recognizer.hypothesis();
    expect(hypothesis?.text).toMatch(/^go forward( me)?$/);
    expect(hypothesis?.words.slice(0, 2)).toMatchObject([{ word: 'go' }, { word: 'forward' }]);
    expect((await recognizer.finish()).text).toBe('go forward me');
  });
});

describe('concurrent utterances of one process', () => {
  it('share one model and keep separate keywords', async () => {
    const first = await load('transducer-en');
    const others = [first.beside!(), first.beside!(), first.beside!()];
    const recognizers = [first, ...others];
    const terms = ['ten', 'go', 'ten', 'tan'];
    await Promise.all(
      recognizers.map((recognizer, index) =>
        recognizer.begin({ ...UTTERANCE, isLive: true, keywords: [{ term: terms[index]!, weight: 2 }] }),
      ),
    );
    const samples = whistle(SENTENCE);
    for (let start = 0; start < samples.length; start += 1600) {
      for (const recognizer of recognizers) await recognizer.write(samples.slice(start, start + 1600));
    }
    const texts = await Promise.all(recognizers.map(async (recognizer) => (await recognizer.finish()).text));
    expect(texts).toEqual(terms.map((term) => `go forward ${term === 'ten' ? 'ten' : 'tan'} meters`));
    expect(new Set(recognizers.map((recognizer) => (recognizer as SpawnedRecognizer).pid)).size).toBe(1);
  });
});

describe.each(['transducer-en', 'transducer-whole-en'])('a transducer: %s', (model) => {
  it('prefers a keyword over a similar word, only for that utterance', async () => {
    const recognizer = await load(model);
    const keywords = [
      { term: 'ten', weight: 2 },
      { term: 'no such word', weight: 1 },
    ];
    expect((await recognise(recognizer, { ...UTTERANCE, keywords })).text).toBe('go forward ten meters');
    expect((await recognise(recognizer)).text).toBe('go forward tan meters');
  });

  it('marks words that a keyword changed, and no others', async () => {
    const recognizer = await load(model);
    const keywords = ['ten', 'meters'].map((term) => ({ term, weight: 2 }));
    const { words } = await recognise(recognizer, { ...UTTERANCE, keywords });
    expect(words.map(({ word, original }) => [word, original])).toEqual([
      ['go', null],
      ['forward', null],
      ['ten', 'tan'],
      ['meters', null],
    ]);
    const last = await recognise(recognizer, { ...UTTERANCE, keywords }, whistle(['▁go', '▁tan']));
    expect(last.words.map(({ word, original }) => [word, original]).at(-1)).toEqual(['ten', 'tan']);
  });

  it('reports lower confidence for ambiguous words', async () => {
    const { words, confidence } = await recognise(await load(model));
    const sure = Object.fromEntries(words.map((word) => [word.word, word.confidence!]));
    expect(sure.tan).toBeGreaterThan(0.3);
    expect(sure.tan).toBeLessThan(sure.meters!);
    expect(sure.meters).toBeLessThanOrEqual(1);
    expect(confidence).toBeCloseTo(Object.values(sure).reduce((sum, value) => sum + value) / 4);
  });
});

it('recognises utterances beyond the input length of the model', async () => {
  const sentences = 20;
  const one = whistle(SENTENCE);
  const samples = new Int16Array(sentences * one.length);
  for (let index = 0; index < sentences; index++) samples.set(one, index * one.length);
  const { text, words } = await recognise(await load('ctc-whole-en'), UTTERANCE, samples);
  expect(text).toBe(Array.from({ length: sentences }, () => 'go forward tan meters').join(' '));
  for (const [index, { word, startMs }] of words.entries()) {
    if (word !== 'tan') continue;
    const expectedMs = Math.floor(index / 4) * (one.length / 16) + whistledAtMs(3);
    expect(Math.abs(startMs - expectedMs), `${index}`).toBeLessThanOrEqual(TIME_TOLERANCE_MS);
  }
});

it('scales times by the frame length of the model', async () => {
  await writeStreamingCtc(join(modelsDir, 'coarse/stt/en'), { subsampling: 8 });
  const { words } = await recognise(await load('en', join(modelsDir, 'coarse')), UTTERANCE);
  expect(Math.abs(words.at(-1)!.startMs - whistledAtMs(4))).toBeLessThanOrEqual(80);
});

it('adds punctuation to final results if installed, and keeps the times', async () => {
  const folder = join(modelsDir, 'punctuated');
  await writeStreamingCtc(join(folder, 'stt/en'));
  await writePunctuation(join(folder, 'punctuation/zh-en'));
  const recognizer = await load('en', folder);
  const { text, words } = await recognise(recognizer);
  expect(text).toBe('go, forward tan meters.');
  expect(words.map(({ word }) => word)).toEqual(['go,', 'forward', 'tan', 'meters.']);
  expect(Math.abs(words[3]!.startMs - whistledAtMs(4))).toBeLessThanOrEqual(TIME_TOLERANCE_MS);
});

describe('unloadable sherpa-onnx model', () => {
  const cases = [
    { what: 'missing tokens', damage: (folder: string) => rm(join(folder, 'tokens.txt')), says: 'tokens' },
    {
      what: 'a truncated file',
      damage: (folder: string) => truncate(join(folder, 'model.onnx'), 2000),
      says: 'cut off',
    },
    {
      what: 'a web page in place of the model',
      damage: (folder: string) => writeFile(join(folder, 'model.onnx'), '<html>'),
      says: 'damaged',
    },
  ];

  it.each(cases)('reports $what before loading', async ({ damage, says }) => {
    const folder = await mkdtemp(join(modelsDir, 'damaged-'));
    await writeOfflineCtc(join(folder, 'stt/en'));
    const engine = createSherpaEngine({ modelsDir: folder, processes: 1 });
    const [description] = await engine.describe();
    await damage(join(folder, 'stt/en'));
    expect(await engine.describe()).toEqual([]);
    const failure = { code: 'model', retryable: false, message: expect.stringContaining(says) };
    await expect(engine.load(description!)).rejects.toMatchObject(failure);
  });

  it('crashes only its own process', async () => {
    const folder = await mkdtemp(join(modelsDir, 'garbled-'));
    await writeStreamingTransducer(join(folder, 'stt/en'));
    // A valid model of the wrong kind.
    await cp(join(folder, 'stt/en/joiner.onnx'), join(folder, 'stt/en/decoder.onnx'));
    const engine = createSherpaEngine({ modelsDir: folder, processes: 1 });
    const [description] = await engine.describe();
    await expect(engine.load(description!)).rejects.toMatchObject({ code: 'model' });
  });
});

describe('language detection', () => {
  const LOW = whistle(['▁go', '▁for']);
  const HIGH = whistle(['▁me', 'ters']);
  const ANY: UtteranceOptions = { ...UTTERANCE, language: null };

  it('comes from Whisper, with sentence times', async () => {
    const folder = join(modelsDir, 'whispered');
    await writeWhisper(join(folder, 'stt/whisper'));
    const recognizer = await load('whisper', folder);
    expect(recognizer.description).toMatchObject({ languages: ['en', 'fr'], detectsLanguage: true, streams: false });
    const { text, startMs, endMs } = WHISPERED;
    const low = await recognise(recognizer, ANY, LOW);
    expect(low).toMatchObject({ text, language: 'en', words: [{ word: text, startMs, endMs, confidence: null }] });
    expect((await recognise(recognizer, ANY, HIGH)).language).toBe('fr');
    expect((await recognise(recognizer, { ...UTTERANCE, language: 'fr' }, LOW)).language).toBe('fr');
    expect((await recognise(recognizer, ANY, LOW)).language).toBe('en');
  });

  it('routes each language to its own model', async () => {
    const folder = join(modelsDir, 'switching');
    await writeWhisper(join(folder, 'language-id/whisper'));
    await writeStreamingTransducer(join(folder, 'stt/one-en'));
    await writeOfflineCtc(join(folder, 'stt/other-fr'));
    const recognizer = await load('by-language', folder);
    expect(recognizer.description).toMatchObject({
      ...{ languages: ['fr', 'en'], detectsLanguage: true, streams: false },
      ...{ boostsKeywords: false, hasConfidence: false },
    });
    const low = await recognise(recognizer, ANY, LOW);
    expect(low).toMatchObject({ text: 'go for', language: 'en', model: 'sherpa-onnx/one-en' });
    const high = await recognise(recognizer, ANY, HIGH);
    expect(high).toMatchObject({ text: 'meters', language: 'fr', model: 'sherpa-onnx/other-fr' });
    const recognition = await recognise(recognizer, { ...UTTERANCE, language: 'en' }, HIGH);
    expect(recognition).toMatchObject({ language: 'en', model: 'sherpa-onnx/one-en' });
  });

  it('uses the start of a long utterance without losing audio', async () => {
    const recognizer = await load('by-language', join(modelsDir, 'switching'));
    const samples = new Int16Array(16 * 16_000);
    const last = whistle(['▁me', 'ters']);
    samples.set(LOW, 0);
    samples.set(last, samples.length - last.length);
    expect((await recognise(recognizer, ANY, samples)).text).toBe('go for meters');
  });
});

it('knows all tokens of its vocabulary', async () => {
  const recognizer = await load('ctc-streaming-en');
  for (const { token } of WHISTLED_TOKENS.filter(({ token }) => token !== '▁ten')) {
    expect((await recognise(recognizer, UTTERANCE, whistle([token]))).text).toBe(token.replace('▁', ''));
  }
});
