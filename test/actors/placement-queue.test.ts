import { describe, expect, it } from 'vitest';
import { createPlacementQueue, type Placement } from '../../actors/placement-queue.ts';
import { eventually } from '../eventually.ts';
import { createTestClock } from './fakes.ts';

describe('placement queue', () => {
  it('admits a placement at once, and all that wait meanwhile together, in the order of their requests', async () => {
    const { admissions, place } = open();
    const placed = [place('one', 'a')];
    await eventually(() => expect(admissions).toHaveLength(1));
    expect(admissions[0]!.requests).toEqual(['a']);
    placed.push(...['b', 'c', 'd'].map((request) => place('one', request)));
    admissions[0]!.resolve();
    expect(await placed[0]).toBe('stored a');
    await eventually(() => expect(admissions).toHaveLength(2));
    expect(admissions[1]!.requests).toEqual(['b', 'c', 'd']);
    admissions[1]!.resolve();
    expect(await Promise.all(placed)).toEqual(['stored a', 'stored b', 'stored c', 'stored d']);
  });

  it('admits at most sixteen placements together, and one that may not join in its turn', async () => {
    const { admissions, place } = open();
    const requests = ['0', 'alone', ...Array.from({ length: 17 }, (_, index) => `${index + 1}`)];
    for (const request of requests) void place('one', request);
    for (const count of [1, 2, 3]) {
      await eventually(() => expect(admissions).toHaveLength(count));
      admissions[count - 1]!.resolve();
    }
    const expected = [['0', ...requests.slice(2, 17)], ['alone'], ['16', '17']];
    expect(admissions.map((admission) => admission.requests)).toEqual(expected);
  });

  it('admits placements of different workspaces at the same time', async () => {
    const { admissions, place } = open();
    void place('one', 'a');
    void place('two', 'b');
    await eventually(() => expect(admissions.map(({ requests }) => requests)).toEqual([['a'], ['b']]));
  });

  it('rejects a placement behind a hundred others at once, with Retry-After', async () => {
    const { admissions, place } = open();
    void place('one');
    await eventually(() => expect(admissions).toHaveLength(1));
    for (let placement = 0; placement < 100; placement += 1) void place('one');
    await expect(place('one')).rejects.toMatchObject({ code: 'PLACEMENTS_OVERLOADED', status: 503, retryAfterS: 1 });
    expect(admissions).toHaveLength(1);
    void place('two');
    await eventually(() => expect(admissions).toHaveLength(2));
  });

  it('rejects a placement that waited for five seconds, and admits the next when the one before is stored', async () => {
    const { admissions, clock, place } = open();
    void place('one', 'slow');
    await eventually(() => expect(admissions).toHaveLength(1));
    admissions[0]!.turns[0]!.claim();
    const late = expect(place('one', 'late')).rejects.toMatchObject({ code: 'PLACEMENTS_OVERLOADED' });
    clock.advance(5_000);
    await late;
    const next = place('one', 'next');
    admissions[0]!.resolve();
    await eventually(() => expect(admissions).toHaveLength(2));
    expect(admissions[1]!.requests).toEqual(['next']);
    admissions[1]!.resolve();
    expect(await next).toBe('stored next');
  });

  it('rejects an admission without a claim after five seconds; it keeps its slot and can no longer claim', async () => {
    const { admissions, clock, place } = open();
    const late = expect(place('one')).rejects.toMatchObject({ code: 'PLACEMENTS_OVERLOADED', retryAfterS: 1 });
    await eventually(() => expect(admissions).toHaveLength(1));
    clock.advance(5_000);
    await late;
    const turn = admissions[0]!.turns[0]!;
    expect(turn.refused.aborted).toBe(true);
    expect(() => turn.claim()).toThrow(expect.objectContaining({ code: 'PLACEMENTS_OVERLOADED' }));
    const next = place('one', 'next');
    expect(admissions).toHaveLength(1);
    admissions[0]!.reject(new Error('refused'));
    await eventually(() => expect(admissions).toHaveLength(2));
    admissions[1]!.resolve();
    expect(await next).toBe('stored next');
  });

  it('rejects only those of an admission that have not claimed after five seconds', async () => {
    const { admissions, clock, place } = open();
    const [claimed, late] = [place('one', 'claimed'), place('one', 'late')];
    await eventually(() => expect(admissions).toHaveLength(1));
    expect(admissions[0]!.requests).toEqual(['claimed', 'late']);
    admissions[0]!.turns[0]!.claim();
    const rejected = expect(late).rejects.toMatchObject({ code: 'PLACEMENTS_OVERLOADED' });
    clock.advance(5_000);
    await rejected;
    clock.advance(60_000);
    admissions[0]!.resolve();
    expect(await claimed).toBe('stored claimed');
    expect(admissions[0]!.turns.map(({ refused }) => refused.aborted)).toEqual([false, true]);
  });

  it('forwards the outcome of each placement, and errors of an admission to all of it', async () => {
    const { admissions, place } = open();
    const [placed, refused] = [place('one', 'placed'), place('one', 'refused')];
    await eventually(() => expect(admissions).toHaveLength(1));
    admissions[0]!.resolve();
    expect(await placed).toBe('stored placed');
    await expect(refused).rejects.toThrow('no money');
    const failed = ['c', 'd'].map((request) => expect(place('one', request)).rejects.toThrow('no database'));
    await eventually(() => expect(admissions).toHaveLength(2));
    admissions[1]!.reject(new Error('no database'));
    await Promise.all(failed);
  });
});

/** Requests named `refused` are rejected one by one; those named `alone` are not admitted with others. */
function open() {
  const clock = createTestClock();
  const admissions: Admission[] = [];
  const queue = createPlacementQueue<string, string>({
    clock,
    mayJoin: (others, next) => ![...others, next].includes('alone'),
    async admit(placements) {
      const ended = Promise.withResolvers<void>();
      const requests = placements.map(({ request }) => request);
      admissions.push({ requests, turns: placements.map(({ turn }) => turn), ...ended });
      await ended.promise;
      const admitOne = async (request: string) => {
        if (request === 'refused') throw new Error('no money');
        return `stored ${request}`;
      };
      return await Promise.allSettled(requests.map(admitOne));
    },
  });
  return { clock, admissions, place: (workspaceId: string, request = 'any') => queue.run(workspaceId, request) };
}

interface Admission {
  requests: string[];
  turns: Placement<string>['turn'][];
  resolve: () => void;
  reject: (reason: Error) => void;
}
