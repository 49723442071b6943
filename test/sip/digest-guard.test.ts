import { describe, expect, it } from 'vitest';
import { answerChallenge } from '../../sip/digest.ts';
import { DigestGuard } from '../../sip/digest-guard.ts';

const USER = '+911140000001';
const SOURCE = '192.0.2.7';
const ACCOUNT = { username: 'pbx "one"', password: 'correct horse' };

function start() {
  let nowMs = 1_000_000_000_000;
  const guard = new DigestGuard({ now: () => nowMs });
  const uri = `sip:${USER}@192.0.2.1`;
  const answer = (challenge: string, given: Partial<Parameters<typeof answerChallenge>[0]> = {}) =>
    answerChallenge({ status: 401, challenge, method: 'INVITE', uri, ...ACCOUNT, ...given })!.value;
  return {
    challenge: (source = SOURCE) => guard.challenge({ isStale: false, source }),
    answer,
    check: (authorization: string | undefined, given: { user?: string; source?: string } = {}) =>
      guard.check({
        authorization,
        method: 'INVITE',
        user: USER,
        source: SOURCE,
        passwordOf: (username) => (username === ACCOUNT.username ? ACCOUNT.password : null),
        ...given,
      }),
    pass: (ms: number) => {
      nowMs += ms;
    },
  };
}

describe('digest guard', () => {
  it('accepts an answer once', async () => {
    const { challenge, answer, check } = start();
    const authorization = answer(challenge());
    expect(await check(authorization)).toBe('accepted');
    expect(await check(authorization)).toBe('stale');
  });

  it('treats an answer as stale after a minute', async () => {
    const { challenge, answer, check, pass } = start();
    const authorization = answer(challenge());
    pass(60_000);
    expect(await check(authorization)).toBe('stale');
  });

  it.each([
    { what: 'with a wrong password', given: { password: 'wrong horse' } },
    { what: 'with another user name', given: { username: 'somebody' } },
    { what: 'for another method', given: { method: 'REGISTER' } },
    { what: 'for another number', given: { uri: 'sip:+911140000002@192.0.2.1' } },
  ])('rejects an answer $what', async ({ given }) => {
    const { challenge, answer, check } = start();
    expect(await check(answer(challenge(), given))).toBe('refused');
  });

  it.each([undefined, '', 'Basic cGJ4OnB3', 'Digest', 'Digest realm="tandem"', 'Digest realm="elsewhere", nonce="1"'])(
    'treats %j as no answer, which leads to a new challenge',
    async (authorization) => {
      expect(await start().check(authorization)).toBe('challenge');
    },
  );

  it('treats an answer to the challenge of another server or a changed nonce as stale', async () => {
    const [one, other] = [start(), start()];
    expect(await one.check(other.answer(other.challenge()))).toBe('stale');
    const changed = one.challenge().replace(/nonce="./, 'nonce="0');
    expect(await one.check(one.answer(changed))).toBe('stale');
  });

  it.each(['\u00e9'.repeat(32), 'x', ''])('rejects the response %j', async (response) => {
    const { challenge, answer, check } = start();
    expect(await check(answer(challenge()).replace(/response="[^"]*"/, `response="${response}"`))).toBe('refused');
  });

  it('treats an answer from another address as stale, without counting it as a failure', async () => {
    const { challenge, answer, check } = start();
    for (let index = 0; index < 20; index++) {
      const forged = answer(challenge('192.0.2.66'), { password: 'wrong' });
      expect(await check(forged)).toBe('stale');
    }
    expect(await check(answer(challenge()))).toBe('accepted');
  });

  it('rejects an unknown user name or another number without counting a failure', async () => {
    const { challenge, answer, check } = start();
    for (let index = 0; index < 20; index++) {
      expect(await check(answer(challenge(), { username: 'somebody' }))).toBe('refused');
      expect(await check(answer(challenge(), { uri: 'sip:+911140000002@192.0.2.1' }))).toBe('refused');
    }
    expect(await check(answer(challenge()))).toBe('accepted');
  });

  it('rejects even a correct answer after ten failures from its address', async () => {
    const { challenge, answer, check } = start();
    for (let index = 0; index < 10; index++) await check(answer(challenge(), { password: 'wrong' }));
    expect(await check(answer(challenge()))).toBe('refused');
    expect(await check(answer(challenge('192.0.2.8')), { source: '192.0.2.8' })).toBe('accepted');
  });

  it('rejects even a correct answer after ten failures from its IPv6 /64', async () => {
    const { challenge, answer, check } = start();
    const give = (source: string, password = ACCOUNT.password) =>
      check(answer(challenge(source), { password }), { source });
    for (let host = 1; host <= 10; host++) await give(`2001:db8:0:7::${host}`, 'wrong');
    expect(await give('2001:db8:0:7:1:2:3:4')).toBe('refused');
    expect(await give('2001:db8:0:8::1')).toBe('accepted');
  });
});
