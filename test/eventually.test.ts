import { afterEach, expect, it, vi } from 'vitest';
import { eventually, untilTruthy } from './eventually.ts';

afterEach(() => {
  vi.useRealTimers();
});

it('leaves a simulated clock alone while it waits', async () => {
  vi.useFakeTimers();
  const ring = vi.fn();
  setInterval(ring, 1);
  let checks = 0;
  await eventually(() => {
    checks += 1;
    expect(checks).toBeGreaterThan(3);
  });
  expect(ring).not.toHaveBeenCalled();
});

it('fails with the last error once its time is over', async () => {
  let checks = 0;
  const waited = eventually(() => {
    checks += 1;
    throw new Error(`check ${checks} failed`);
  }, 60);
  await expect(waited).rejects.toThrow(/^check \d+ failed$/);
  expect(checks).toBeGreaterThan(1);
});

it('ends the wait for a truthy value at once if the check throws', async () => {
  const check = vi.fn(() => {
    throw new Error('broken');
  });
  await expect(untilTruthy(check, 'a value')).rejects.toMatchObject({
    message: 'could not be checked: a value',
    cause: { message: 'broken' },
  });
  expect(check).toHaveBeenCalledTimes(1);
});
