import { argon2Sync } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { checkPassword, hashPassword } from '../../storage/passwords.ts';

const unpadded = (bytes: Buffer) => bytes.toString('base64').replace(/=+$/, '');

interface Parameters {
  memory: number;
  passes: number;
  parallelism?: number;
  tagLength?: number;
}

function hashOf(password: string, { memory, passes, parallelism = 1, tagLength = 32 }: Parameters): string {
  const nonce = Buffer.alloc(16, 7);
  const parameters = { message: password, nonce, parallelism, tagLength, memory, passes };
  const tag = argon2Sync('argon2id', parameters);
  return `$argon2id$v=19$m=${memory},t=${passes},p=${parallelism}$${unpadded(nonce)}$${unpadded(tag)}`;
}

describe('password hash', () => {
  it('matches its password only, and differs each time', async () => {
    const [first, second] = await Promise.all([hashPassword('green staple'), hashPassword('green staple')]);
    expect(first).not.toBe(second);
    expect(first).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[A-Za-z0-9+/]{22}\$[A-Za-z0-9+/]{43}$/);
    expect(await checkPassword('green staple', first)).toEqual({ matches: true, isOutdated: false });
    for (const wrong of ['green stapl', 'Green staple', '']) {
      expect(await checkPassword(wrong, first)).toEqual({ matches: false, isOutdated: false });
    }
  });

  it('matches in composed and decomposed Unicode', async () => {
    const composed = await hashPassword('caf\u00e9 au lait');
    expect((await checkPassword('cafe\u0301 au lait', composed)).matches).toBe(true);
  });

  it.each([
    { memory: 8192, passes: 2 },
    { memory: 19_456, passes: 1 },
    { memory: 19_456, passes: 2, parallelism: 2 },
    { memory: 19_456, passes: 2, tagLength: 16 },
  ])('matches in the form %j and needs an upgrade', async (parameters) => {
    const hash = hashOf('green staple', parameters);
    expect(await checkPassword('green staple', hash)).toEqual({ matches: true, isOutdated: true });
    expect(await checkPassword('wrong', hash)).toEqual({ matches: false, isOutdated: false });
  });

  it.each([null, '', 'plain text', '$2b$10$abcdefghijklmnopqrstuv', '$argon2id$v=19$m=1,t=1,p=1$x$y'])(
    'matches nothing if it is %j',
    async (hash) => {
      expect(await checkPassword('green staple', hash)).toEqual({ matches: false, isOutdated: false });
    },
  );

  it('supports many concurrent checks', async () => {
    const hash = await hashPassword('green staple');
    const checks = Array.from({ length: 12 }, (_, i) => checkPassword(i % 3 === 0 ? 'wrong' : 'green staple', hash));
    expect((await Promise.all(checks)).filter(({ matches }) => matches)).toHaveLength(8);
  });
});
