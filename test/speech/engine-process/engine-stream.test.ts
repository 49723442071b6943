import { afterEach, describe, expect, it } from 'vitest';
import { ProcessError } from '../../../runtime/supervised-process.ts';
import { EngineCallError, EngineProcess } from '../../../speech/engine-process/engine-process.ts';

const ENTRY = new URL('./streaming-engine.ts', import.meta.url);
const started: EngineProcess[] = [];

afterEach(async () => {
  await Promise.all(started.splice(0).map((engine) => engine.close()));
});

async function start(): Promise<EngineProcess> {
  const engine = await EngineProcess.start({ entry: ENTRY, argument: null });
  started.push(engine);
  return engine;
}

async function valuesOf(parts: AsyncIterable<{ value: unknown; bytes: Buffer }>): Promise<unknown[]> {
  const values: unknown[] = [];
  for await (const { value } of parts) values.push(value);
  return values;
}

describe('streaming engine', () => {
  it('delivers parts in order with their bytes', async () => {
    const engine = await start();
    let next = 0;
    for await (const { value, bytes } of engine.stream('count', { parts: 20, partBytes: 3000 })) {
      expect(value).toBe(next);
      expect(bytes).toEqual(Buffer.alloc(3000, next));
      next += 1;
    }
    expect(next).toBe(20);
  });

  it('delivers parts while it still computes', async () => {
    const engine = await start();
    const parts = engine.stream('count', { parts: 1, holdMs: 60_000 });
    expect(await parts.next()).toMatchObject({ value: { value: 0 } });
  });

  it('pauses when its owner does not read, without losing parts', async () => {
    const engine = await start();
    const parts = engine.stream('count', { parts: 200, partBytes: 500_000 });
    let bytes = 0;
    for await (const part of parts) bytes += part.bytes.byteLength;
    expect(bytes).toBe(100_000_000);
  });

  it('fails after the parts that it sent before', async () => {
    const engine = await start();
    const values: unknown[] = [];
    const reading = (async () => {
      for await (const { value } of engine.stream('count', { parts: 3, fail: true })) values.push(value);
    })();
    await expect(reading).rejects.toThrow(new EngineCallError('broken', 'it broke'));
    expect(values).toEqual([0, 1, 2]);
  });

  it('accepts the next call when the reader returns early', async () => {
    const engine = await start();
    for await (const { value } of engine.stream('count', { parts: 50, partBytes: 10_000 })) if (value === 3) break;
    expect(await engine.call('late', null)).toBe('late');
    expect(await valuesOf(engine.stream('count', { parts: 2 }))).toEqual([0, 1]);
  });

  it('resolves idle() when it has finished abandoned work', async () => {
    const engine = await start();
    for await (const _ of engine.stream('count', { parts: 2, holdMs: 200 })) break;
    let isLateAnswered = false;
    const late = engine.call('late', null).then(() => {
      isLateAnswered = true;
    });
    await engine.idle();
    expect(isLateAnswered).toBe(true);
    await late;
    await engine.idle();
    const hanging = engine.stream('count', { parts: 1, holdMs: 60_000 });
    await hanging.next();
    await hanging.return();
    await Promise.all([engine.idle(), engine.close()]);
  });

  it('serves pipelined streams and calls in order', async () => {
    const engine = await start();
    const [first, second, third] = await Promise.all([
      valuesOf(engine.stream('count', { parts: 2 })),
      engine.call('late', null),
      valuesOf(engine.stream('count', { parts: 3 })),
    ]);
    expect([first, second, third]).toEqual([[0, 1], 'late', [0, 1, 2]]);
  });

  it('fails when it sends unsolicited parts', async () => {
    const engine = await start();
    await expect(engine.call('count', { parts: 1 })).rejects.toThrow(ProcessError);
  });

  it('fails current streams when it closes', async () => {
    const engine = await start();
    const parts = engine.stream('count', { parts: 1, holdMs: 60_000 });
    await parts.next();
    const rest = parts.next();
    await Promise.all([expect(rest).rejects.toThrow(ProcessError), engine.close()]);
  });
});
