import { mkdtemp, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createSherpaSynthesisEngine } from '../../../speech/engines/sherpa-onnx/sherpa-synthesis-engine.ts';
import type { Clause, Synthesizer } from '../../../speech/synthesizer.ts';
import { ECHOING_RATE_HZ, writeEchoingZipvoice, writeTone } from '../echoing-model.ts';
import {
  HUMMED_TOKEN_SAMPLES,
  HUMMING_RATE_HZ,
  hummedHz,
  writeHummingKitten,
  writeHummingKokoro,
  writeHummingMatcha,
  writeHummingPiper,
  writeHummingVits,
} from '../humming-models.ts';
import { itIsASynthesisEngine } from './synthesizer-conformance.ts';

const NEVER = new AbortController().signal;
let home: string;

beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), 'tandem-voices-'));
});

afterAll(() => rm(home, { recursive: true }));

const ENGINES = { processes: 1 };

async function modelsWith(name: string, write: (folder: string) => Promise<void>): Promise<string> {
  const modelsDir = await mkdtemp(join(home, 'models-'));
  await write(join(modelsDir, 'tts', name));
  return modelsDir;
}

function engineOf(modelsDir: string) {
  return createSherpaSynthesisEngine({ modelsDir, ...ENGINES });
}

async function speak(synthesizer: Synthesizer, text: string, options: Partial<Clause> & { voice: string }) {
  const words = text.split(' ').map((word) => ({ written: word, spoken: word, phonemes: null }));
  const clause = { words, speed: 1, pitchSemitones: 0, pitchRange: 1, reference: null, ...options };
  const blocks: Int16Array[] = [];
  for await (const { samples } of synthesizer.speak(clause, NEVER)) blocks.push(samples);
  return blocks;
}

const KINDS = [
  { name: 'vits-en', write: (folder: string) => writeHummingVits(folder, { speakers: 3 }) },
  { name: 'vits-piper-en_US-hum-low', write: (folder: string) => writeHummingPiper(folder) },
  { name: 'kokoro-en-v0_19', write: (folder: string) => writeHummingKokoro(folder, { speakers: 3 }) },
  { name: 'kitten-nano-en-v0_1', write: (folder: string) => writeHummingKitten(folder, { speakers: 2 }) },
  { name: 'matcha-icefall-en_US-hum', write: (folder: string) => writeHummingMatcha(folder) },
];

for (const { name, write } of KINDS) {
  itIsASynthesisEngine({
    name: `sherpa-onnx with ${name}`,
    engine: async () => engineOf(await modelsWith(name, write)),
    text: 'go forward ten meters and then stop.',
    isDeterministic: true,
    hasMarks: false,
    speedTolerance: 0.1,
  });
}

describe('voice cloning model', () => {
  const name = 'zipvoice-distill-en-zh-emilia';
  const referenceOf = async (hz: number) => {
    const path = join(home, `${hz}.wav`);
    await writeTone(path, hz);
    return { path, text: 'one two' };
  };

  itIsASynthesisEngine({
    name: `sherpa-onnx with ${name}`,
    async engine() {
      await referenceOf(1000);
      return engineOf(await modelsWith(name, writeEchoingZipvoice));
    },
    text: 'one two one two one two',
    get reference() {
      return { path: join(home, '1000.wav'), text: 'one two' };
    },
    // ZipVoice starts from random noise and may leave rounding errors.
    isDeterministic: false,
    hasMarks: false,
    speedTolerance: 0.3,
  });

  it('imitates the reference recording', async () => {
    const engine = engineOf(await modelsWith(name, writeEchoingZipvoice));
    const voices = await engine.voices();
    expect(voices.map(({ name, language, clones }) => [name, language, clones])).toEqual([
      [name, 'en', true],
      [`${name}@zh`, 'zh', true],
    ]);
    const synthesizer = await engine.start({ model: name, signal: NEVER });
    const pitches: number[] = [];
    for (const hz of [400, 1000, 2500]) {
      const blocks = await speak(synthesizer, 'one two', { voice: name, reference: await referenceOf(hz) });
      const samples = blocks.flatMap((block) => [...block]);
      const crossings = samples.filter((sample, at) => at > 0 && sample >= 0 && samples[at - 1]! < 0).length;
      pitches.push((crossings * ECHOING_RATE_HZ) / samples.length);
    }
    expect(pitches[1]! / pitches[0]!).toBeGreaterThan(2);
    expect(pitches[2]! / pitches[1]!).toBeGreaterThan(2);
    await synthesizer.close();
  });

  it('rejects a missing or invalid recording and stays usable', async () => {
    const engine = engineOf(await modelsWith(name, writeEchoingZipvoice));
    const synthesizer = await engine.start({ model: name, signal: NEVER });
    const text = 'one two';
    await expect(speak(synthesizer, text, { voice: name })).rejects.toMatchObject({ code: 'unknown_voice' });
    const page = join(home, 'page.wav');
    await writeFile(page, '<html>');
    const cut = await referenceOf(500);
    await truncate(cut.path, 44);
    for (const path of [join(home, 'nowhere.wav'), page, cut.path]) {
      const spoken = speak(synthesizer, text, { voice: name, reference: { path, text } });
      await expect(spoken).rejects.toMatchObject({ code: 'model', message: expect.stringContaining('recording') });
    }
    const reference = await referenceOf(1000);
    expect((await speak(synthesizer, text, { voice: name, reference })).length).toBeGreaterThan(0);
    await synthesizer.close();
  });
});

describe('humming model', () => {
  let synthesizer: Synthesizer;
  beforeAll(async () => {
    const modelsDir = await modelsWith('vits-en', (folder) => writeHummingVits(folder, { speakers: 2 }));
    synthesizer = await engineOf(modelsDir).start({ model: 'vits-en', signal: NEVER });
  });
  afterAll(() => synthesizer.close());

  it('renders each letter at the speed and in the voice of the speaker', async () => {
    const blocks = await speak(synthesizer, 'Abc', { voice: 'vits-en#1', speed: 0.8 });
    const samples = Int16Array.from(blocks.flatMap((block) => [...block]));
    expect(synthesizer.sampleRateHz).toBe(HUMMING_RATE_HZ);
    const tokenSamples = HUMMED_TOKEN_SAMPLES / 0.8;
    expect(samples.length).toBe(3 * tokenSamples);
    for (const [index, token] of [1, 2, 3].entries()) {
      const rendered = samples.subarray(index * tokenSamples, (index + 1) * tokenSamples);
      const crossings = rendered.reduce(
        (sum, sample, at) => sum + Number(at > 0 && sample >= 0 && rendered[at - 1]! < 0),
        0,
      );
      expect(Math.abs((crossings * HUMMING_RATE_HZ) / tokenSamples - hummedHz(token, 1))).toBeLessThan(25);
    }
  });

  it('streams sentence by sentence', async () => {
    const blocks = await speak(synthesizer, 'go. on. now.', { voice: 'vits-en#0' });
    expect(blocks.map(({ length }) => length / HUMMED_TOKEN_SAMPLES)).toEqual([3, 4, 5]);
  });

  it('rejects text that takes minutes and stays usable', async () => {
    const limitTokens = (300 * HUMMING_RATE_HZ * 0.2) / HUMMED_TOKEN_SAMPLES;
    const endless = speak(synthesizer, 'a'.repeat(1.1 * limitTokens), { voice: 'vits-en#0', speed: 0.2 });
    await expect(endless).rejects.toMatchObject({ code: 'too_long' });
    expect((await speak(synthesizer, 'a', { voice: 'vits-en#0' })).length).toBe(1);
  });
});

describe('sherpa-onnx voices', () => {
  it('list the speakers of each model with its metadata', async () => {
    const modelsDir = await modelsWith('kokoro-en-v0_19', (folder) => writeHummingKokoro(folder, { speakers: 3 }));
    await writeHummingPiper(join(modelsDir, 'tts/vits-piper-en_GB-alan-low'));
    await writeHummingVits(join(modelsDir, 'tts/vits-mms-deu'), { metadata: { language: '' } });
    const engine = createSherpaSynthesisEngine({ modelsDir, processes: 3 });
    expect(engine).toMatchObject({ name: 'sherpa-onnx', controlsPitch: false, maxInstances: 3 });
    const common = { clones: false };
    expect(await engine.voices()).toEqual([
      { name: 'kokoro-en-v0_19#0', model: 'kokoro-en-v0_19', language: 'en-us', gender: 'female', ...common },
      { name: 'kokoro-en-v0_19#1', model: 'kokoro-en-v0_19', language: 'en-gb', gender: 'male', ...common },
      { name: 'kokoro-en-v0_19#2', model: 'kokoro-en-v0_19', language: 'zh', gender: 'female', ...common },
      { name: 'vits-mms-deu', model: 'vits-mms-deu', language: 'de', gender: null, ...common },
      ...[{ name: 'vits-piper-en_GB-alan-low', model: 'vits-piper-en_GB-alan-low' }].map((voice) => ({
        ...{ ...voice, language: 'en-gb', gender: null },
        ...common,
      })),
    ]);
  });

  it('follow the manifest', async () => {
    const modelsDir = await modelsWith('mine', (folder) => writeHummingVits(folder, { speakers: 2 }));
    const speakers = [{ gender: 'female' }, { gender: 'male', language: 'hi' }];
    await writeFile(join(modelsDir, 'tts/mine/tandem.json'), JSON.stringify({ languages: ['en-in'], speakers }));
    const voices = await engineOf(modelsDir).voices();
    expect(voices.map(({ language, gender }) => [language, gender])).toEqual([
      ['en-in', 'female'],
      ['hi', 'male'],
    ]);
  });

  it('without a folder list nothing and report what to do', async () => {
    const engine = engineOf(join(home, 'nowhere'));
    expect(await engine.voices()).toEqual([]);
    expect(await engine.problem()).toContain('tandem models fetch');
  });
});

describe('unusable sherpa-onnx voice model', () => {
  const file = (name: string) => (folder: string) => join(folder, name);
  const cases = [
    {
      what: 'missing tokens',
      write: writeHummingVits,
      damage: (folder: string) => rm(file('tokens.txt')(folder)),
      says: 'tokens',
    },
    {
      what: 'a truncated file',
      write: writeHummingVits,
      damage: (folder: string) => truncate(file('model.onnx')(folder), 1500),
      says: 'cut off',
    },
    {
      what: 'a web page in place of the model',
      write: writeHummingVits,
      damage: (folder: string) => writeFile(file('model.onnx')(folder), '<html>'),
      says: 'damaged',
    },
    {
      what: 'a sample rate that is too low',
      write: (folder: string) => writeHummingVits(folder, { metadata: { sample_rate: 100 } }),
      says: 'sample rate of 100 Hz',
    },
    {
      what: 'an absurd sample rate',
      write: (folder: string) => writeHummingVits(folder, { metadata: { sample_rate: 400_000_000 } }),
      says: 'sample rate of 400000000 Hz',
    },
    {
      what: 'a sample rate that is not a number',
      write: (folder: string) => writeHummingVits(folder, { metadata: { sample_rate: 'fast' } }),
      says: 'sample rate',
    },
    {
      what: 'an absurd number of speakers',
      write: (folder: string) => writeHummingVits(folder, { metadata: { n_speakers: 99_999_999 } }),
      says: '99999999 speakers',
    },
    {
      what: 'an unknown language',
      write: (folder: string) => writeHummingVits(folder, { metadata: { language: '?' } }),
      says: 'languages',
    },
    {
      what: 'truncated styles',
      write: writeHummingKokoro,
      damage: (folder: string) => truncate(file('voices.bin')(folder), 100),
      says: 'voices.bin is damaged',
    },
    {
      what: 'missing eSpeak NG data',
      write: writeHummingPiper,
      damage: (folder: string) => rm(file('espeak-ng-data/phontab')(folder)),
      says: 'espeak-ng-data',
    },
    {
      what: 'a missing vocoder',
      write: writeHummingMatcha,
      damage: (folder: string) => rm(file('hifigan_v2.onnx')(folder)),
      says: 'vocoder',
    },
    {
      what: 'an invalid manifest',
      write: writeHummingVits,
      damage: (folder: string) => writeFile(file('tandem.json')(folder), '{"type": "opera"}'),
      says: 'tandem.json',
    },
    {
      what: 'a manifest with a path outside of the folder',
      write: writeHummingVits,
      damage: (folder: string) => writeFile(file('tandem.json')(folder), '{"files": {"model": "../model.onnx"}}'),
      says: 'tandem.json',
    },
  ];

  it.each(cases)('reports $what before loading', async ({ write, damage, says }) => {
    const modelsDir = await modelsWith('broken', (folder) => write(folder));
    await damage?.(join(modelsDir, 'tts/broken'));
    const engine = engineOf(modelsDir);
    expect(await engine.voices()).toEqual([]);
    expect(await engine.problem()).toContain(says);
    const starting = engine.start({ model: 'broken', signal: NEVER });
    await expect(starting).rejects.toMatchObject({ code: 'model', message: expect.stringContaining(says) });
  });

  it.each([
    {
      what: 'garbled tokens',
      damage: (folder: string) => writeFile(file('tokens.txt')(folder), 'a b c d e\nf\n\n'),
    },
    {
      what: 'missing metadata',
      damage: (folder: string) => writeHummingPiper(folder, { metadata: { n_speakers: '' } }),
    },
    {
      what: 'a garbled graph',
      async damage(folder: string) {
        const path = file('en_US-hum-low.onnx')(folder);
        const bytes = await readFile(path);
        await writeFile(path, bytes.fill(0x55, 20, 400));
      },
    },
    {
      what: 'garbled phonemes',
      damage: (folder: string) => writeFile(file('espeak-ng-data/phontab')(folder), Buffer.alloc(5000, 0xff)),
    },
  ])('crashes only its own process with $what', async ({ damage }) => {
    const modelsDir = await modelsWith('vits-piper-en_US-hum-low', writeHummingPiper);
    await damage(join(modelsDir, 'tts/vits-piper-en_US-hum-low'));
    const starting = engineOf(modelsDir).start({ model: 'vits-piper-en_US-hum-low', signal: NEVER });
    await expect(starting).rejects.toMatchObject({ name: 'SynthesizerError', code: 'model' });
  });
});
