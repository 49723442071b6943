import { createHash, createHmac, randomBytes } from 'node:crypto';
import { expect, it } from 'vitest';
import { Sha256 } from '../../../storage/s3/sha256.ts';

it.each([0, 1, 262_144, 262_145, 5_000_000])('sha256 of %i bytes matches Node.js', async (length) => {
  const data = randomBytes(length);
  const hash = new Sha256();
  hash.update(data);
  hash.update('and a text');
  expect(await hash.digest()).toEqual(createHash('sha256').update(data).update('and a text').digest());
  const keyed = new Sha256('key');
  keyed.update(data);
  expect(await keyed.digest()).toEqual(createHmac('sha256', 'key').update(data).digest());
});

it('sha256 yields to the event loop while it hashes an upload part', async () => {
  const hash = new Sha256();
  hash.update(randomBytes(5 * 1024 * 1024));
  let turns = 0;
  const ended = { current: false };
  const count = () => {
    turns += 1;
    if (!ended.current) setImmediate(count);
  };
  setImmediate(count);
  await hash.digest();
  ended.current = true;
  expect(turns).toBeGreaterThanOrEqual(19);
});
