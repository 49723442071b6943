import { describe, expect, it } from 'vitest';
import { createPlacementQueue } from '../../actors/placement-queue.ts';
import { eventually } from '../eventually.ts';
import { createTestClock } from './fakes.ts';

describe('the placement queue', () => {
  it('admits two placements of a workspace at a time, in the order of their requests', async () => {
    const { admissions, place } = open();
    const placed = ['first', 'second', 'third', 'fourth'].map(() => place('one'));
    await eventually(() => expect(admissions).toHaveLength(2));
    admissions[0]!.resolve('first');
    expect(await placed[0]).toBe('first');
    await eventually(() => expect(admissions).toHaveLength(3));
    admissions[2]!.resolve('third');
    expect(await placed[2]).toBe('third');
  });

  it('refuses at once, with Retry-After, what would wait behind a hundred others', async () => {
    const { admissions, place } = open();
    for (let placement = 0; placement < 2 + 100; placement += 1) void place('one');
    await expect(place('one')).rejects.toMatchObject({ code: 'PLACEMENTS_OVERLOADED', status: 503, retryAfterS: 1 });
    expect(admissions).toHaveLength(2);
    void place('two');
    await eventually(() => expect(admissions).toHaveLength(3));
  });

  it('refuses what has waited for five seconds, and lets the next one in when a pass is free again', async () => {
    const { admissions, clock, place } = open();
    void place('one');
    void place('one');
    await eventually(() => expect(admissions).toHaveLength(2));
    const late = expect(place('one')).rejects.toMatchObject({ code: 'PLACEMENTS_OVERLOADED' });
    clock.advance(5_000);
    await late;
    const next = place('one');
    admissions[0]!.resolve('done');
    await eventually(() => expect(admissions).toHaveLength(3));
    admissions[2]!.resolve('next');
    expect(await next).toBe('next');
  });

  it('passes on what the admission throws, and gives its place to the next one', async () => {
    const { admissions, place } = open();
    const [refused] = [place('one'), place('one'), place('one')];
    await eventually(() => expect(admissions).toHaveLength(2));
    admissions[0]!.reject(new Error('no channel'));
    await expect(refused).rejects.toThrow('no channel');
    await eventually(() => expect(admissions).toHaveLength(3));
  });
});

function open() {
  const clock = createTestClock();
  const queue = createPlacementQueue({ clock });
  const admissions: PromiseWithResolvers<string>[] = [];
  return {
    ...{ clock, admissions },
    place: (workspaceId: string) =>
      queue.run(workspaceId, () => {
        const admission = Promise.withResolvers<string>();
        admissions.push(admission);
        return admission.promise;
      }),
  };
}
