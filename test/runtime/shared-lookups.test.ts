import { describe, expect, it } from 'vitest';
import { SimulatedClock } from 'xstate';
import { SharedLookups } from '../../runtime/shared-lookups.ts';
import { eventually } from '../eventually.ts';

/** A lookup that answers on demand. */
function opened() {
  const begun: { key: string; answer: (value: string) => void; fail: (error: Error) => void }[] = [];
  const clock = new SimulatedClock();
  const lookUp = (key: string): Promise<string> => {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    begun.push({ key, answer: resolve, fail: reject });
    return promise;
  };
  const lookups = new SharedLookups(lookUp, { clock });
  return { begun, clock, get: (key = 'a') => lookups.get(key) };
}

describe('shared lookups', () => {
  it('serve callers that ask during a lookup by one later lookup', async () => {
    const { begun, get } = opened();
    const first = get();
    const later = [get(), get(), get()];
    begun[0]!.answer('before');
    expect(await first).toBe('before');
    await eventually(() => expect(begun).toHaveLength(2));
    begun[1]!.answer('after');
    expect(await Promise.all(later)).toEqual(['after', 'after', 'after']);
    expect(begun).toHaveLength(2);
  });

  it('never return a value that was looked up before the caller asked', async () => {
    const { begun, get } = opened();
    const first = get();
    begun[0]!.answer('old');
    await first;
    const second = get();
    begun[1]!.answer('new');
    expect(await second).toBe('new');
  });

  it('do not let keys wait for each other', async () => {
    const { begun, get } = opened();
    void get('a');
    const other = get('b');
    expect(begun.map(({ key }) => key)).toEqual(['a', 'b']);
    begun[1]!.answer('of b');
    expect(await other).toBe('of b');
  });

  it('do not wait long for a lookup without an answer', async () => {
    const { begun, clock, get } = opened();
    const stuck = get();
    const second = get();
    clock.increment(249);
    await Promise.resolve();
    expect(begun).toHaveLength(1);
    clock.increment(1);
    await eventually(() => expect(begun).toHaveLength(2));
    begun[1]!.answer('found');
    expect(await second).toBe('found');
    const third = get();
    begun[2]!.answer('found again');
    expect(await third).toBe('found again');
    begun[0]!.answer('late');
    expect(await stuck).toBe('late');
  });

  it('forget keys without a lookup, and no others', async () => {
    const { begun, get } = opened();
    const first = get('a');
    for (let index = 1; index <= 2_500; index++) {
      const other = get(`other ${index}`);
      begun[index]!.answer('found');
      await other;
    }
    const second = get('a');
    expect(begun).toHaveLength(2_501);
    begun[0]!.answer('before');
    expect(await first).toBe('before');
    await eventually(() => expect(begun).toHaveLength(2_502));
    begun[2_501]!.answer('after');
    expect(await second).toBe('after');
  });

  it('report an error to its callers only', async () => {
    const { begun, get } = opened();
    const first = get();
    const second = get();
    const failed = expect(first).rejects.toThrow('lost');
    begun[0]!.fail(new Error('lost'));
    await failed;
    await eventually(() => expect(begun).toHaveLength(2));
    begun[1]!.answer('found');
    expect(await second).toBe('found');
  });
});
