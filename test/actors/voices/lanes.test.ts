import { expect, it } from 'vitest';
import { createLanes } from '../../../actors/voices/lanes.ts';
import { quiet } from '../fakes.ts';

const { signal } = new AbortController();

/** Work that goes on until it is told to end. */
function work() {
  const ended = Promise.withResolvers<void>();
  let isRunning = false;
  return {
    end: ended.resolve,
    isRunning: () => isRunning,
    async run() {
      isRunning = true;
      await ended.promise;
      isRunning = false;
    },
  };
}

it('so many run at a time, and those that wait follow in order', async () => {
  const lanes = createLanes(2);
  const all = [work(), work(), work(), work()];
  const runs = all.map(({ run }) => lanes.run(run, signal));
  await quiet();
  expect(all.map(({ isRunning }) => isRunning())).toEqual([true, true, false, false]);
  all[1]!.end();
  await quiet();
  expect(all.map(({ isRunning }) => isRunning())).toEqual([true, false, true, false]);
  for (const { end } of all) end();
  await Promise.all(runs);
  await lanes.idle();
});

it('whoever leaves as its turn comes takes it from nobody', async () => {
  const lanes = createLanes(1);
  const [first, gone, last] = [work(), work(), work()];
  const leaving = new AbortController();
  const running = lanes.run(() => {
    const going = first.run();
    void going.then(() => leaving.abort(new Error('left')));
    return going;
  }, signal);
  const left = lanes.run(gone.run, leaving.signal);
  const waited = lanes.run(last.run, signal);
  first.end();
  await running;
  await expect(left).rejects.toThrow('left');
  await quiet();
  expect([gone.isRunning(), last.isRunning()]).toEqual([false, true]);
  last.end();
  await waited;
});

it('no more run than there are lanes when one is passed on while another comes', async () => {
  const lanes = createLanes(1);
  const [first, second, third] = [work(), work(), work()];
  const running = lanes.run(first.run, signal);
  const waiting = lanes.run(second.run, signal);
  const coming = running.then(() => lanes.run(third.run, signal));
  first.end();
  await quiet();
  expect([second.isRunning(), third.isRunning()]).toEqual([true, false]);
  second.end();
  third.end();
  await Promise.all([waiting, coming]);
});

it('what fails leaves its lane', async () => {
  const lanes = createLanes(1);
  await expect(lanes.run(() => Promise.reject(new Error('no')), signal)).rejects.toThrow('no');
  expect(await lanes.run(async () => 'next', signal)).toBe('next');
  await expect(lanes.run(async () => {}, AbortSignal.abort(new Error('late')))).rejects.toThrow('late');
});
