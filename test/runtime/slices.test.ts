import { describe, expect, it } from 'vitest';
import { runInSlices, Slice, textSlices } from '../../runtime/slices.ts';
import * as fc from '../properties.ts';

const gone = new Error('gone');
const never = new AbortController().signal;

describe('runInSlices', () => {
  it('returns the result of the work', async () => {
    expect(await runInSlices(work(3), never)).toBe(3);
  });

  it('lets timers and I/O run during long work', async () => {
    let wasInterrupted = false;
    setImmediate(() => {
      wasInterrupted = true;
    });
    await runInSlices(
      untilTrue(() => wasInterrupted),
      never,
    );
    expect(wasInterrupted).toBe(true);
  });

  it('stops at the next yield after an abort, with its reason', async () => {
    const owner = new AbortController();
    setImmediate(() => owner.abort(gone));
    await expect(
      runInSlices(
        untilTrue(() => false),
        owner.signal,
      ),
    ).rejects.toBe(gone);
  });

  it('does not start after an abort', async () => {
    let steps = 0;
    function* counted(): Generator<void, void> {
      steps += 1;
      yield;
    }
    await expect(runInSlices(counted(), AbortSignal.abort(gone))).rejects.toBe(gone);
    expect(steps).toBe(0);
  });

  it('rejects with the error of the work', async () => {
    function* broken(): Generator<void, void> {
      yield;
      throw gone;
    }
    await expect(runInSlices(broken(), never)).rejects.toBe(gone);
  });
});

describe('Slice', () => {
  it('ends after a while and restarts after a rest', async () => {
    const slice = new Slice();
    while (!slice.isOver);
    let ran = false;
    setImmediate(() => {
      ran = true;
    });
    await slice.rest();
    expect(ran).toBe(true);
  });
});

describe('textSlices', () => {
  it('covers any text without gaps or split surrogate pairs', async () => {
    const unit = fc.constantFrom('a', 'ß', '語', '😀', '\ud83d');
    const text = fc.array(unit, { minLength: 0, maxLength: 9_000 }).map((units) => units.join(''));
    await fc.assert(
      fc.asyncProperty(text, async (whole) => {
        let at = 0;
        for await (const { from, to } of textSlices(whole)) {
          expect(from).toBe(at);
          expect(to).toBeGreaterThan(from);
          expect(isInsidePair(whole, to)).toBe(false);
          at = to;
        }
        expect(at).toBe(whole.length);
      }),
      { numRuns: 50 },
    );
  });
});

function isInsidePair(text: string, at: number): boolean {
  return (text.charCodeAt(at - 1) & 0xfc00) === 0xd800 && (text.charCodeAt(at) & 0xfc00) === 0xdc00;
}

function* work(steps: number): Generator<void, number> {
  for (let step = 0; step < steps; step++) yield;
  return steps;
}

function* untilTrue(condition: () => boolean): Generator<void, void> {
  while (!condition()) yield;
}
