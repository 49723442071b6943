import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { errorRate, sumOfErrors, wordErrors } from '../../../bench/word-error-rate.ts';
import { findNativeInstallation, NATIVE_PACKAGES } from '../../../speech/engines/pocketsphinx/native-decoder.ts';
import {
  createNativePocketsphinxEngine,
  createPocketsphinxEngine,
  type PocketsphinxEngine,
} from '../../../speech/engines/pocketsphinx/pocketsphinx-engine.ts';
import { repairedWasm } from '../../../speech/engines/pocketsphinx/repaired-wasm.ts';
import { PACKAGED_WASM } from '../../../speech/engines/pocketsphinx/wasm-decoder.ts';
import type { Keyword } from '../../../speech/recognizer.ts';
import { itIsARecognizer } from '../recognizer-conformance.ts';
import { byTelephone, spokenUtterances } from '../spoken.ts';

const isNativeInstalled = (await findNativeInstallation()) !== null;
const SAMPLE_RATE_HZ = 16_000;
const cacheDir = await mkdtemp(join(tmpdir(), 'tandem-pocketsphinx-'));
const wasm = createPocketsphinxEngine({ cacheDir, processes: 1 });
const native = createNativePocketsphinxEngine({ processes: 1 });
/** Different voices; the benchmark uses longer utterances. */
const spoken = ['goforward', 'librivox-0880', 'cards-004'].map((wanted) => {
  const { samples, text } = utteranceNamed(wanted);
  return { samples, text, language: 'en' };
});

afterAll(() => rm(cacheDir, { recursive: true, force: true }));

itIsARecognizer({
  name: 'PocketSphinx in WebAssembly',
  load: () => load(wasm),
  spoken,
  mostWordErrorRate: 0.35,
  unknownLanguage: 'de',
});

describe.skipIf(!isNativeInstalled)(`with ${NATIVE_PACKAGES} installed`, () => {
  itIsARecognizer({
    name: 'PocketSphinx, native',
    load: () => load(native),
    spoken,
    mostWordErrorRate: 0.35,
    unknownLanguage: 'de',
  });
});

const engines = [wasm, ...(isNativeInstalled ? [native] : [])];

describe.each(engines.map((engine) => ({ name: engine.name, engine })))('$name', { timeout: 120_000 }, ({ engine }) => {
  let recognizer: Awaited<ReturnType<typeof load>>;

  beforeAll(async () => {
    recognizer = await load(engine);
  });

  afterAll(() => recognizer?.close());

  it('reports higher confidence for correct words', async () => {
    const { samples, text } = utteranceNamed('librivox-0870');
    const { words } = await understood(samples);
    const mean = (of: typeof words): number => of.reduce((sum, word) => sum + word.confidence!, 0) / of.length;
    const right = words.filter(({ word }) => text.split(' ').includes(word));
    const wrong = words.filter(({ word }) => !text.split(' ').includes(word));
    expect(wrong.length).toBeGreaterThan(0);
    expect(mean(right)).toBeGreaterThan(mean(wrong));
  });

  it('recognises an unknown name only while it is a keyword', async () => {
    // "and mister john dashwood had then": the dictionary lacks the name.
    const samples = utteranceNamed('librivox-0870').samples.slice(0, 2.2 * SAMPLE_RATE_HZ);
    const keywords = [{ term: 'John Dashwood', weight: 3 }];
    const boosted = await understood(samples, keywords);
    expect(boosted.text).toContain('john dashwood');
    const name = boosted.words.find(({ word }) => word === 'dashwood');
    expect(name!.original).toMatch(/^[a-z']+( [a-z']+)*$/);
    expect(boosted.words.filter(({ original }) => original !== null).length).toBeLessThanOrEqual(2);
    expect((await understood(samples)).text).not.toContain('dashwood');
  });

  it('inserts no keywords that are not in the speech', async () => {
    const { samples } = utteranceNamed('cards-001');
    const keywords = ['Dashwood', 'Tandem', 'IVR', 'call centre', ''].map((term) => ({ term, weight: 5 }));
    expect((await understood(samples, keywords)).text).toBe((await understood(samples)).text);
  });

  it('recognises telephone speech about as well', async () => {
    const errors = [];
    for (const { samples, text } of spoken) {
      errors.push(wordErrors(text, (await understood(byTelephone(samples))).text));
    }
    expect(errorRate(sumOfErrors(errors))).toBeLessThan(0.35);
  });

  it('recognises the same words regardless of the previous utterance', async () => {
    const { samples } = spoken[0]!;
    const texts = async () => [(await understood(samples)).text, (await understood(byTelephone(samples))).text];
    const first = await texts();
    expect(await texts()).toEqual(first);
  });

  it('boosts keywords in telephone speech', async () => {
    const samples = byTelephone(utteranceNamed('librivox-0870').samples.slice(0, 2.2 * SAMPLE_RATE_HZ));
    const boosted = await understood(samples, [{ term: 'John Dashwood', weight: 3 }]);
    expect(boosted.text).toContain('john dashwood');
    expect(boosted.words.find(({ word }) => word === 'dashwood')!.original).not.toBeNull();
    expect((await understood(samples)).text).not.toContain('dashwood');
  });

  it('fails pending requests when killed, and a new instance works', async () => {
    const { samples } = spoken[0]!;
    await recognizer.begin({ language: 'en', keywords: [], isLive: true });
    await recognizer.write(samples.slice(0, 32_000));
    const finishing = recognizer.finish();
    process.kill(recognizer.pid!, 'SIGKILL');
    await expect(finishing).rejects.toMatchObject({ code: 'crashed', retryable: true });
    await recognizer.close();
    recognizer = await load(engine);
    expect((await understood(samples)).text).not.toBe('');
  });

  async function understood(samples: Int16Array<ArrayBuffer>, keywords: Keyword[] = []) {
    await recognizer.begin({ language: 'en', keywords, isLive: false });
    await recognizer.write(samples.slice());
    return recognizer.finish();
  }
});

describe('native PocketSphinx', () => {
  it('exists only where its packages are installed, and names missing ones', async () => {
    const descriptions = await native.describe();
    expect(descriptions.map(({ engine }) => engine)).toEqual(isNativeInstalled ? ['pocketsphinx-native'] : []);
    expect(await native.problem()).toBe(isNativeInstalled ? null : `${NATIVE_PACKAGES} are not installed`);
  });
});

describe('repaired WebAssembly', () => {
  it('comes from the cache, and is rebuilt if the cached file is damaged', async () => {
    const folder = join(cacheDir, 'kept', 'here');
    const made = await repairedWasm(PACKAGED_WASM, folder);
    const [name] = await readdir(folder);
    const file = join(folder, name!);
    const sealed = await readFile(file);
    sealed[1000]! ^= 1;
    await writeFile(file, sealed);
    expect(await repairedWasm(PACKAGED_WASM, folder)).toEqual(made);
    sealed[1000]! ^= 1;
    expect(await readFile(file)).toEqual(sealed);
    expect(await readdir(folder)).toEqual([name]);
  });

  it('works without a writable cache', async () => {
    // The path is a file, so nothing can be stored below it.
    expect((await repairedWasm(PACKAGED_WASM, PACKAGED_WASM)).length).toBeGreaterThan(0);
  });

  it('rejects another build or a missing file', async () => {
    const other = join(cacheDir, 'other.wasm');
    await writeFile(other, Buffer.from([0, 0x61, 0x73, 0x6d, 1, 0, 0, 0]));
    await expect(repairedWasm(other, cacheDir)).rejects.toMatchObject({ code: 'model' });
    await expect(repairedWasm(join(cacheDir, 'none.wasm'), cacheDir)).rejects.toMatchObject({ code: 'model' });
  });
});

function utteranceNamed(wanted: string) {
  return spokenUtterances().find(({ name }) => name === wanted)!;
}

async function load(engine: PocketsphinxEngine) {
  const [description] = await engine.describe();
  return engine.load(description!);
}
