import { mkdir, mkdtemp, readdir, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { SpokenPart } from '../../../speech/speech-synthesis.ts';
import { SynthesisDesk } from '../../../speech/synthesis/synthesis-desk.ts';
import { SynthesizerError } from '../../../speech/synthesizer.ts';
import { crash, createFakeEngine, decodeWords, type FakeEngineOptions } from './fake-engine.ts';
import { clause, RECIPE, request, samplesOf } from './said.ts';

const cleanUps: (() => unknown)[] = [];

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp();
});

function speaking({
  processes = 2,
  folder = '',
  mostBytes = 0,
  ...options
}: FakeEngineOptions & { processes?: number; folder?: string; mostBytes?: number } = {}) {
  const engine = createFakeEngine({ maxInstances: processes, ...options });
  const broken: string[] = [];
  const desk = new SynthesisDesk({
    available: { engines: [engine], missing: [] },
    processes,
    cache: { folder, mostBytes },
    onBroken: ({ detail }) => broken.push(detail),
  });
  cleanUps.push(() => desk.drain());
  let keys = 0;
  const open = (asked: Parameters<SynthesisDesk['open']>[1]): number => {
    desk.open(keys, asked);
    return keys++;
  };
  const rest = async (key: number): Promise<SpokenPart[]> => {
    const parts: SpokenPart[] = [];
    for (let part = await desk.next(key); part !== null; part = await desk.next(key)) parts.push(part);
    return parts;
  };
  const render = async (text: string): Promise<number[]> => decodeWords(samplesOf(await rest(open(request(text)))));
  return { desk, engine, open, rest, render, broken };
}

async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
}

describe('synthesis of a text', () => {
  it('delivers the first block before the first clause is complete', async () => {
    const held = Promise.withResolvers<void>();
    const { desk, open, rest } = speaking({ script: ({ word }) => (word === 'w2' ? held.promise : undefined) });
    const key = open(request('w1 w2 | w3'));
    const first = await desk.next(key);
    expect(first!.audio.length).toBeGreaterThan(0);
    held.resolve();
    expect(decodeWords(samplesOf([first!, ...(await rest(key))]))).toEqual([1, 2, 3]);
  });

  it('stays one clause ahead of its reader', async () => {
    const { desk, open, engine } = speaking({ processes: 1 });
    const key = open(request('w1 | w2 | w3 | w4'));
    await settled();
    expect(engine.asked).toEqual(['w1']);
    await desk.next(key);
    await settled();
    expect(engine.asked).toEqual(['w1', 'w2']);
  });

  it('delivers chunks of at most 16 kB with their word times', async () => {
    const { open, rest } = speaking();
    const text = Array.from({ length: 60 }, (_, index) => `w${index}`).join(' ');
    const parts = await rest(open(request(text, { format: { encoding: 'LINEAR16', sampleRateHz: 48_000 } })));
    expect(Math.max(...parts.map(({ audio }) => audio.length))).toBeLessThanOrEqual(16_384);
    let lastMs = 0;
    for (const { words, durationMs } of parts) {
      for (const { startMs, endMs } of words) {
        expect(startMs).toBeGreaterThanOrEqual(lastMs);
        expect(endMs).toBeLessThanOrEqual(durationMs);
        lastMs = endMs;
      }
    }
    expect(parts.flatMap(({ words }) => words)).toHaveLength(60);
  });

  it('renders pauses as silence and shifts later words', async () => {
    const { open, rest } = speaking();
    const clauses = [{ ...clause('w1'), pauseAfterMs: 250 }, { ...clause(''), pauseAfterMs: 50 }, clause('w2')];
    const parts = await rest(open(request('', { script: { clauses, characters: 4 } })));
    expect(parts.at(-1)!.durationMs).toBe(500);
    const samples = samplesOf(parts);
    expect(samples.subarray(800, 3200).every((sample) => sample === 0)).toBe(true);
    expect(parts.flatMap(({ words }) => words).map(({ startMs }) => startMs)).toEqual([0, 400]);
  });

  it('restarts a dead instance without losing or repeating audio', async () => {
    const delivered = Promise.withResolvers<void>();
    let deaths = 0;
    const { desk, open, rest, engine, broken } = speaking({
      async script({ word }) {
        if (word !== 'w3' || deaths++ > 0) return;
        await delivered.promise;
        crash();
      },
    });
    const key = open(request('w1 w2 w3 w4'));
    const first = await desk.next(key);
    delivered.resolve();
    const parts = [first!, ...(await rest(key))];
    expect(decodeWords(samplesOf(parts))).toEqual([1, 2, 3, 4]);
    expect(parts.flatMap(({ words }) => words).map(({ startMs }) => startMs)).toEqual([0, 100, 200, 300]);
    expect({ started: engine.started.length, broken }).toEqual({ started: 2, broken: ['as the script says'] });
  });

  it('fails when a second instance dies', async () => {
    const { render, engine } = speaking({ script: ({ word }) => (word === 'w2' ? crash() : undefined) });
    await expect(render('w1 w2')).rejects.toMatchObject({ code: 'crashed' });
    expect(engine.started).toHaveLength(2);
  });

  it('splits a clause that takes the engine too long', async () => {
    const { render } = speaking({
      script: ({ clause: asked }) => {
        if (asked.words.length > 2) throw new SynthesizerError('too_long', 'minutes');
      },
    });
    expect(await render('w1 w2 w3 w4 w5')).toEqual([1, 2, 3, 4, 5]);
  });

  it('continues at the interrupted word if a clause takes too long after some audio', async () => {
    const delivered = Promise.withResolvers<void>();
    const { desk, open, rest, broken } = speaking({
      async script({ word, clause: asked }) {
        if (asked.words.length < 4 || asked.words[2]!.spoken !== word) return;
        await delivered.promise;
        throw new SynthesizerError('too_long', 'minutes');
      },
    });
    const key = open(request('w1 w2 w3 w4 w5'));
    const first = await desk.next(key);
    delivered.resolve();
    const parts = [first!, ...(await rest(key))];
    expect(decodeWords(samplesOf(parts))).toEqual([1, 2, 2, 3, 3, 4, 5]);
    expect(parts.flatMap(({ words }) => words).map(({ word }) => word)).toEqual(['w1', 'w2', 'w3', 'w4', 'w5']);
    expect(broken).toEqual([]);
  });

  it('fails if it cannot continue after such an interruption', async () => {
    const delivered = Promise.withResolvers<void>();
    const { desk, open, rest } = speaking({
      async script({ word }) {
        if (word !== 'w2') return;
        await delivered.promise;
        throw new SynthesizerError('too_long', 'minutes');
      },
    });
    const key = open(request('w1 w2'));
    await desk.next(key);
    delivered.resolve();
    await expect(rest(key)).rejects.toMatchObject({ code: 'too_long' });
  });

  it('keeps the instance after an unknown voice', async () => {
    const { render, engine } = speaking({
      processes: 1,
      script: ({ word }) => {
        if (word === 'w9') throw new SynthesizerError('unknown_voice', 'no');
      },
    });
    await expect(render('w9')).rejects.toMatchObject({ code: 'unknown_voice' });
    await render('w1');
    expect(engine.started).toHaveLength(1);
  });

  it('frees the instance when closed', async () => {
    const { desk, open, render, engine } = speaking({ processes: 1 });
    const key = open(request(Array.from({ length: 1000 }, (_, index) => `w${index}`).join(' ')));
    await desk.next(key);
    desk.close(key);
    expect(await render('w5')).toEqual([5]);
    expect(engine.started).toHaveLength(1);
    await expect(desk.next(key)).rejects.toMatchObject({ code: 'crashed' });
  });

  it('keeps the instance after a close until the engine is idle, so that no queue builds up', async () => {
    const over = Promise.withResolvers<void>();
    const { desk, open, render, engine } = speaking({ processes: 1, idle: () => over.promise });
    const left = open(request(Array.from({ length: 1000 }, (_, index) => `w${index}`).join(' ')));
    await desk.next(left);
    for (const text of ['w1', 'w2', 'w3']) {
      desk.close(left);
      desk.close(open(request(text)));
    }
    const rendered = render('w5');
    await settled();
    expect(engine.asked).toHaveLength(1);
    over.resolve();
    expect(await rendered).toEqual([5]);
    expect(engine.asked).toHaveLength(2);
  });
});

describe('synthesis of many texts', () => {
  it('shares a limited number of instances, and all texts advance', async () => {
    const { render, engine } = speaking({ processes: 2 });
    await Promise.all(Array.from({ length: 20 }, () => render('w1 | w2 | w3')));
    expect({ most: engine.mostRunning, started: engine.started.length }).toEqual({ most: 2, started: 2 });
    expect(engine.asked.slice(0, 20)).toEqual(Array.from({ length: 20 }, () => 'w1'));
  });

  it('alternates two models in one process without reloading for every clause', async () => {
    const { open, rest, engine } = speaking({ processes: 1 });
    const other = { ...RECIPE, model: 'n' };
    const keys = [
      open(request('w1|w2|w3|w4')),
      open(request('w1|w2|w3|w4', { recipe: other })),
      open(request('w5|w6')),
    ];
    const all = await Promise.all(keys.map((key) => rest(key)));
    expect(all.map((parts) => decodeWords(samplesOf(parts)))).toEqual([
      [1, 2, 3, 4],
      [1, 2, 3, 4],
      [5, 6],
    ]);
    expect(engine.closed).toBe(engine.started.length - 1);
    expect(engine.started.length).toBeLessThan(8);
  });
});

describe('synthesis cache', () => {
  async function folderOf(): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'speech-cache-'));
    cleanUps.push(() => rm(folder, { recursive: true, force: true }));
    return join(folder, 'speech');
  }

  it('saves an instance, even after a restart', async () => {
    const folder = await folderOf();
    const one = speaking({ folder, mostBytes: 1e6 });
    const parts = await one.rest(one.open(request('w1 w2 | w3')));
    await one.desk.drain();
    const two = speaking({ folder, mostBytes: 1e6 });
    const again = await two.rest(two.open(request('w1 w2 | w3')));
    expect(two.engine.started).toEqual([]);
    expect(samplesOf(again)).toEqual(samplesOf(parts));
    expect(again.flatMap(({ words }) => words)).toEqual(parts.flatMap(({ words }) => words));
    expect((await stat(folder)).mode & 0o777).toBe(0o700);
    const [file] = await readdir(folder);
    expect((await stat(join(folder, file!))).mode & 0o777).toBe(0o600);
  });

  it('evicts the least recently used entry when full', async () => {
    const folder = await folderOf();
    // Each word takes 1600 bytes plus a header.
    const { desk, render } = speaking({ folder, mostBytes: 5500 });
    for (const text of ['w1', 'w2', 'w3', 'w4', 'w5']) await render(text);
    await desk.drain();
    expect(await readdir(folder)).toHaveLength(3);
    const again = speaking({ folder, mostBytes: 5500 });
    await again.render('w5');
    expect(again.engine.asked).toEqual([]);
    await again.render('w1');
    expect(again.engine.asked).toEqual(['w1']);
  });

  it.each([
    ['cut off', (path: string) => truncate(path, 700)],
    ['overwritten', (path: string) => writeFile(path, Buffer.alloc(2000, 7))],
    ['empty', (path: string) => truncate(path, 0)],
  ])('replaces an entry whose file is %s', async (_how, damage) => {
    const folder = await folderOf();
    const one = speaking({ folder, mostBytes: 1e6 });
    await one.render('w7');
    await one.desk.drain();
    const [file] = await readdir(folder);
    await damage(join(folder, file!));
    const two = speaking({ folder, mostBytes: 1e6 });
    expect(await two.render('w7')).toEqual([7]);
    expect(two.engine.asked).toEqual(['w7']);
  });

  it('forgets a clause for which the engine had no sound', async () => {
    const folder = await folderOf();
    const one = speaking({ folder, mostBytes: 1e6, isMute: true });
    await expect(one.render('w7')).rejects.toMatchObject({ code: 'unsayable' });
    await one.desk.drain();
    const two = speaking({ folder, mostBytes: 1e6 });
    expect(await two.render('w7')).toEqual([7]);
  });

  it('keeps files that others are writing and removes abandoned ones', async () => {
    const folder = await folderOf();
    await mkdir(folder);
    const [fresh, old] = ['a', 'b'].map((digit) => `${digit.repeat(64)}.${digit.repeat(16)}.tmp`) as [string, string];
    for (const name of [fresh, old]) await writeFile(join(folder, name), 'half');
    await utimes(join(folder, old), 0, 0);
    const { desk, render } = speaking({ folder, mostBytes: 1e6 });
    await render('w1');
    await desk.drain();
    expect(await readdir(folder)).toContain(fresh);
    expect(await readdir(folder)).not.toContain(old);
  });

  it('separates servers that have a model of the same name', async () => {
    const folder = await folderOf();
    for (const source of ['http://one/v1', 'http://other/v1']) {
      const { desk, render, engine } = speaking({ folder, mostBytes: 1e6, source });
      expect(await render('w1')).toEqual([1]);
      expect(engine.asked).toEqual(['w1']);
      await desk.drain();
    }
  });

  it('stays unused if the folder is not writable', async () => {
    const folder = await folderOf();
    await writeFile(folder, 'no folder');
    const { render } = speaking({ folder, mostBytes: 1e6 });
    expect(await render('w1')).toEqual([1]);
    expect(await render('w1')).toEqual([1]);
  });
});
