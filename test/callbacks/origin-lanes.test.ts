import { describe, expect, test } from 'vitest';
import { createOriginLanes } from '../../actors/callbacks/origin-lanes.ts';

/** A task that runs until the test ends it. */
function heldTask() {
  const started = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  return {
    task: () => {
      started.resolve();
      return ended.promise;
    },
    started: started.promise,
    end: () => ended.resolve(),
    fail: () => ended.reject(new Error('task failed')),
  };
}

describe('origin lanes', () => {
  test('queue the tasks of a full lane, and run them in order', async () => {
    const lanes = createOriginLanes({ perLane: 1, inAll: 10, maxWaitingPerLane: 10 });
    const [first, second, third] = [heldTask(), heldTask(), heldTask()];
    const done = lanes.run({ lane: 'a', key: '1', task: first.task });
    expect(await lanes.run({ lane: 'a', key: '2', task: second.task })).toBe('parked');
    expect(await lanes.run({ lane: 'a', key: '3', task: third.task })).toBe('parked');
    expect(lanes.counts()).toEqual({ running: 1, waiting: 2, lanes: 1 });
    first.end();
    expect(await done).toBe('done');
    await second.started;
    expect(lanes.counts()).toEqual({ running: 1, waiting: 1, lanes: 1 });
    second.end();
    await third.started;
    third.end();
    await lanes.idle();
    expect(lanes.counts()).toEqual({ running: 0, waiting: 0, lanes: 0 });
  });

  test('take turns when the total is limited', async () => {
    const lanes = createOriginLanes({ perLane: 5, inAll: 1, maxWaitingPerLane: 10 });
    const order: string[] = [];
    const blocker = heldTask();
    const blocked = lanes.run({ lane: 'a', key: 'a0', task: blocker.task });
    for (const key of ['a1', 'a2', 'b1', 'b2', 'c1']) {
      const task = async () => void order.push(key);
      expect(await lanes.run({ lane: key.charAt(0), key, task })).toBe('parked');
    }
    blocker.end();
    await blocked;
    await lanes.idle();
    expect(order).toEqual(['a1', 'b1', 'c1', 'a2', 'b2']);
  });

  test('reject a running key, and accept it after its end', async () => {
    const lanes = createOriginLanes({ perLane: 1, inAll: 10, maxWaitingPerLane: 10 });
    const held = heldTask();
    const done = lanes.run({ lane: 'a', key: '1', task: held.task });
    expect(await lanes.run({ lane: 'a', key: '1', task: held.task })).toBe('refused');
    expect(lanes.has('1')).toBe(true);
    held.end();
    await done;
    expect(lanes.has('1')).toBe(false);
    expect(await lanes.run({ lane: 'a', key: '1', task: async () => {} })).toBe('done');
  });

  test('reject tasks beyond the queue, and free their keys', async () => {
    const lanes = createOriginLanes({ perLane: 1, inAll: 10, maxWaitingPerLane: 0 });
    const held = heldTask();
    const done = lanes.run({ lane: 'a', key: '1', task: held.task });
    expect(await lanes.run({ lane: 'a', key: '2', task: async () => {} })).toBe('refused');
    expect(lanes.has('2')).toBe(false);
    held.end();
    await done;
  });

  test('free the slot of a failed task', async () => {
    const lanes = createOriginLanes({ perLane: 1, inAll: 1, maxWaitingPerLane: 10 });
    const failing = heldTask();
    const next = heldTask();
    const done = lanes.run({ lane: 'a', key: '1', task: failing.task });
    await lanes.run({ lane: 'a', key: '2', task: next.task });
    failing.fail();
    await expect(done).rejects.toThrow('task failed');
    await next.started;
    next.end();
    await lanes.idle();
    expect(lanes.counts()).toEqual({ running: 0, waiting: 0, lanes: 0 });
  });

  test('drop queued tasks on close, finish running ones and reject new ones', async () => {
    const lanes = createOriginLanes({ perLane: 1, inAll: 10, maxWaitingPerLane: 10 });
    const held = heldTask();
    const done = lanes.run({ lane: 'a', key: '1', task: held.task });
    await lanes.run({ lane: 'a', key: '2', task: async () => {} });
    lanes.close();
    expect(lanes.counts()).toEqual({ running: 1, waiting: 0, lanes: 1 });
    expect(await lanes.run({ lane: 'b', key: '3', task: async () => {} })).toBe('refused');
    held.end();
    await Promise.all([done, lanes.idle()]);
    expect(lanes.counts()).toEqual({ running: 0, waiting: 0, lanes: 0 });
  });
});
