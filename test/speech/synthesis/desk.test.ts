import { mkdir, mkdtemp, readdir, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import type { SpokenPart } from '../../../speech/speech-synthesis.ts';
import { SynthesisDesk } from '../../../speech/synthesis/synthesis-desk.ts';
import { SynthesizerError } from '../../../speech/synthesizer.ts';
import { crash, createFakeEngine, type FakeEngineOptions, heardIn } from './fake-engine.ts';
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
  const hear = async (text: string): Promise<number[]> => heardIn(samplesOf(await rest(open(request(text)))));
  return { desk, engine, open, rest, hear, broken };
}

async function settled(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
}

describe('a text', () => {
  it('is handed on from the first block of its first clause', async () => {
    const held = Promise.withResolvers<void>();
    const { desk, open, rest } = speaking({ script: ({ word }) => (word === 'w2' ? held.promise : undefined) });
    const key = open(request('w1 w2 | w3'));
    const first = await desk.next(key);
    expect(first!.audio.length).toBeGreaterThan(0);
    held.resolve();
    expect(heardIn(samplesOf([first!, ...(await rest(key))]))).toEqual([1, 2, 3]);
  });

  it('is made one clause ahead of its listener and no further', async () => {
    const { desk, open, engine } = speaking({ processes: 1 });
    const key = open(request('w1 | w2 | w3 | w4'));
    await settled();
    expect(engine.asked).toEqual(['w1']);
    await desk.next(key);
    await settled();
    expect(engine.asked).toEqual(['w1', 'w2']);
  });

  it('comes in parts of 16 kB at most, the times of its words inside what was handed on', async () => {
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

  it('has its pauses as silence, and its words after them', async () => {
    const { open, rest } = speaking();
    const clauses = [{ ...clause('w1'), pauseAfterMs: 250 }, { ...clause(''), pauseAfterMs: 50 }, clause('w2')];
    const parts = await rest(open(request('', { script: { clauses, characters: 4 } })));
    expect(parts.at(-1)!.durationMs).toBe(500);
    const samples = samplesOf(parts);
    expect(samples.subarray(800, 3200).every((sample) => sample === 0)).toBe(true);
    expect(parts.flatMap(({ words }) => words).map(({ startMs }) => startMs)).toEqual([0, 400]);
  });

  it('goes on in a new instance when one dies, and loses nothing of what was heard or not', async () => {
    const heard = Promise.withResolvers<void>();
    let deaths = 0;
    const { desk, open, rest, engine, broken } = speaking({
      async script({ word }) {
        if (word !== 'w3' || deaths++ > 0) return;
        await heard.promise;
        crash();
      },
    });
    const key = open(request('w1 w2 w3 w4'));
    const first = await desk.next(key);
    heard.resolve();
    const parts = [first!, ...(await rest(key))];
    expect(heardIn(samplesOf(parts))).toEqual([1, 2, 3, 4]);
    expect(parts.flatMap(({ words }) => words).map(({ startMs }) => startMs)).toEqual([0, 100, 200, 300]);
    expect({ started: engine.started.length, broken }).toEqual({ started: 2, broken: ['as the script says'] });
  });

  it('fails when the second instance dies of it too', async () => {
    const { hear, engine } = speaking({ script: ({ word }) => (word === 'w2' ? crash() : undefined) });
    await expect(hear('w1 w2')).rejects.toMatchObject({ code: 'crashed' });
    expect(engine.started).toHaveLength(2);
  });

  it('is spoken in parts where a clause takes the engine too long', async () => {
    const { hear } = speaking({
      script: ({ clause: asked }) => {
        if (asked.words.length > 2) throw new SynthesizerError('too_long', 'minutes');
      },
    });
    expect(await hear('w1 w2 w3 w4 w5')).toEqual([1, 2, 3, 4, 5]);
  });

  it('goes on with the word that was cut off where what takes too long was heard already', async () => {
    const heard = Promise.withResolvers<void>();
    const { desk, open, rest, broken } = speaking({
      async script({ word, clause: asked }) {
        if (asked.words.length < 4 || asked.words[2]!.spoken !== word) return;
        await heard.promise;
        throw new SynthesizerError('too_long', 'minutes');
      },
    });
    const key = open(request('w1 w2 w3 w4 w5'));
    const first = await desk.next(key);
    heard.resolve();
    const parts = [first!, ...(await rest(key))];
    expect(heardIn(samplesOf(parts))).toEqual([1, 2, 2, 3, 3, 4, 5]);
    expect(parts.flatMap(({ words }) => words).map(({ word }) => word)).toEqual(['w1', 'w2', 'w3', 'w4', 'w5']);
    expect(broken).toEqual([]);
  });

  it('fails where it cannot go on after what took too long', async () => {
    const heard = Promise.withResolvers<void>();
    const { desk, open, rest } = speaking({
      async script({ word }) {
        if (word !== 'w2') return;
        await heard.promise;
        throw new SynthesizerError('too_long', 'minutes');
      },
    });
    const key = open(request('w1 w2'));
    await desk.next(key);
    heard.resolve();
    await expect(rest(key)).rejects.toMatchObject({ code: 'too_long' });
  });

  it('keeps the instance when a voice is unknown', async () => {
    const { hear, engine } = speaking({
      processes: 1,
      script: ({ word }) => {
        if (word === 'w9') throw new SynthesizerError('unknown_voice', 'no');
      },
    });
    await expect(hear('w9')).rejects.toMatchObject({ code: 'unknown_voice' });
    await hear('w1');
    expect(engine.started).toHaveLength(1);
  });

  it('that is left frees its instance for others', async () => {
    const { desk, open, hear, engine } = speaking({ processes: 1 });
    const key = open(request(Array.from({ length: 1000 }, (_, index) => `w${index}`).join(' ')));
    await desk.next(key);
    desk.close(key);
    expect(await hear('w5')).toEqual([5]);
    expect(engine.started).toHaveLength(1);
    await expect(desk.next(key)).rejects.toMatchObject({ code: 'crashed' });
  });

  it('that is left keeps its instance while that goes on with it, so that no queue builds up there', async () => {
    const over = Promise.withResolvers<void>();
    const { desk, open, hear, engine } = speaking({ processes: 1, idle: () => over.promise });
    const left = open(request(Array.from({ length: 1000 }, (_, index) => `w${index}`).join(' ')));
    await desk.next(left);
    for (const text of ['w1', 'w2', 'w3']) {
      desk.close(left);
      desk.close(open(request(text)));
    }
    const heard = hear('w5');
    await settled();
    expect(engine.asked).toHaveLength(1);
    over.resolve();
    expect(await heard).toEqual([5]);
    expect(engine.asked).toHaveLength(2);
  });
});

describe('many texts', () => {
  it('share so many instances as there may be, and all advance', async () => {
    const { hear, engine } = speaking({ processes: 2 });
    await Promise.all(Array.from({ length: 20 }, () => hear('w1 | w2 | w3')));
    expect({ most: engine.mostRunning, started: engine.started.length }).toEqual({ most: 2, started: 2 });
    expect(engine.asked.slice(0, 20)).toEqual(Array.from({ length: 20 }, () => 'w1'));
  });

  it('of two models take turns in one process, without loading one for every clause', async () => {
    const { open, rest, engine } = speaking({ processes: 1 });
    const other = { ...RECIPE, model: 'n' };
    const keys = [
      open(request('w1|w2|w3|w4')),
      open(request('w1|w2|w3|w4', { recipe: other })),
      open(request('w5|w6')),
    ];
    const all = await Promise.all(keys.map((key) => rest(key)));
    expect(all.map((parts) => heardIn(samplesOf(parts)))).toEqual([
      [1, 2, 3, 4],
      [1, 2, 3, 4],
      [5, 6],
    ]);
    expect(engine.closed).toBe(engine.started.length - 1);
    expect(engine.started.length).toBeLessThan(8);
  });
});

describe('what was spoken before', () => {
  async function folderOf(): Promise<string> {
    const folder = await mkdtemp(join(tmpdir(), 'speech-cache-'));
    cleanUps.push(() => rm(folder, { recursive: true, force: true }));
    return join(folder, 'speech');
  }

  it('costs no instance, also after a restart', async () => {
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

  it('is forgotten, the least recently used first, when there is too much of it', async () => {
    const folder = await folderOf();
    // Each word takes 1600 bytes and a head.
    const { desk, hear } = speaking({ folder, mostBytes: 5500 });
    for (const text of ['w1', 'w2', 'w3', 'w4', 'w5']) await hear(text);
    await desk.drain();
    expect(await readdir(folder)).toHaveLength(3);
    const again = speaking({ folder, mostBytes: 5500 });
    await again.hear('w5');
    expect(again.engine.asked).toEqual([]);
    await again.hear('w1');
    expect(again.engine.asked).toEqual(['w1']);
  });

  it.each([
    ['cut off', (path: string) => truncate(path, 700)],
    ['overwritten', (path: string) => writeFile(path, Buffer.alloc(2000, 7))],
    ['empty', (path: string) => truncate(path, 0)],
  ])('is spoken anew when its file is %s', async (_how, damage) => {
    const folder = await folderOf();
    const one = speaking({ folder, mostBytes: 1e6 });
    await one.hear('w7');
    await one.desk.drain();
    const [file] = await readdir(folder);
    await damage(join(folder, file!));
    const two = speaking({ folder, mostBytes: 1e6 });
    expect(await two.hear('w7')).toEqual([7]);
    expect(two.engine.asked).toEqual(['w7']);
  });

  it('leaves to others in the folder what they are just writing, and clears away what nobody finished', async () => {
    const folder = await folderOf();
    await mkdir(folder);
    const [fresh, old] = ['a', 'b'].map((digit) => `${digit.repeat(64)}.${digit.repeat(16)}.tmp`) as [string, string];
    for (const name of [fresh, old]) await writeFile(join(folder, name), 'half');
    await utimes(join(folder, old), 0, 0);
    const { desk, hear } = speaking({ folder, mostBytes: 1e6 });
    await hear('w1');
    await desk.drain();
    expect(await readdir(folder)).toContain(fresh);
    expect(await readdir(folder)).not.toContain(old);
  });

  it('is not said again by another server that has a model of the same name', async () => {
    const folder = await folderOf();
    for (const source of ['http://one/v1', 'http://other/v1']) {
      const { desk, hear, engine } = speaking({ folder, mostBytes: 1e6, source });
      expect(await hear('w1')).toEqual([1]);
      expect(engine.asked).toEqual(['w1']);
      await desk.drain();
    }
  });

  it('is not kept where nothing can be written, and speech goes on', async () => {
    const folder = await folderOf();
    await writeFile(folder, 'no folder');
    const { hear } = speaking({ folder, mostBytes: 1e6 });
    expect(await hear('w1')).toEqual([1]);
    expect(await hear('w1')).toEqual([1]);
  });
});
