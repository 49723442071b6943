import { describe, expect, it } from 'vitest';
import { createPlacementQueue, type PlacementTurn } from '../../actors/placement-queue.ts';
import { eventually } from '../eventually.ts';
import { createTestClock } from './fakes.ts';

describe('placement queue', () => {
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

  it('rejects a placement behind a hundred others at once, with Retry-After', async () => {
    const { admissions, place } = open();
    for (let placement = 0; placement < 2 + 100; placement += 1) void place('one');
    await expect(place('one')).rejects.toMatchObject({ code: 'PLACEMENTS_OVERLOADED', status: 503, retryAfterS: 1 });
    expect(admissions).toHaveLength(2);
    void place('two');
    await eventually(() => expect(admissions).toHaveLength(3));
  });

  it('rejects a placement that waited for five seconds, and admits the next when a slot is free', async () => {
    const { admissions, turns, clock, place } = open();
    void place('one');
    void place('one');
    await eventually(() => expect(admissions).toHaveLength(2));
    for (const turn of turns) turn.claim();
    const late = expect(place('one')).rejects.toMatchObject({ code: 'PLACEMENTS_OVERLOADED' });
    clock.advance(5_000);
    await late;
    const next = place('one');
    admissions[0]!.resolve('done');
    await eventually(() => expect(admissions).toHaveLength(3));
    admissions[2]!.resolve('next');
    expect(await next).toBe('next');
  });

  it('rejects an admission without a claim after five seconds; it keeps its slot and can no longer claim', async () => {
    const { admissions, turns, clock, place } = open();
    const late = expect(place('one')).rejects.toMatchObject({ code: 'PLACEMENTS_OVERLOADED', retryAfterS: 1 });
    void place('one');
    void place('one').catch(() => {});
    await eventually(() => expect(admissions).toHaveLength(2));
    turns[1]!.claim();
    clock.advance(5_000);
    await late;
    expect(turns[0]!.refused.aborted).toBe(true);
    expect(() => turns[0]!.claim()).toThrow(expect.objectContaining({ code: 'PLACEMENTS_OVERLOADED' }));
    expect(admissions).toHaveLength(2);
    const next = place('one');
    admissions[0]!.reject(new Error('refused'));
    await eventually(() => expect(admissions).toHaveLength(3));
    admissions[2]!.resolve('next');
    expect(await next).toBe('next');
  });

  it('waits without limit for an admission that has claimed its placement', async () => {
    const { admissions, turns, clock, place } = open();
    const placed = place('one');
    await eventually(() => expect(admissions).toHaveLength(1));
    turns[0]!.claim();
    clock.advance(60_000);
    admissions[0]!.resolve('stored');
    expect(await placed).toBe('stored');
    expect(turns[0]!.refused.aborted).toBe(false);
  });

  it('forwards errors of an admission, and passes its slot on', async () => {
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
  const turns: PlacementTurn[] = [];
  return {
    ...{ clock, admissions, turns },
    place: (workspaceId: string) =>
      queue.run(workspaceId, (turn) => {
        turns.push(turn);
        const admission = Promise.withResolvers<string>();
        admissions.push(admission);
        return admission.promise;
      }),
  };
}
