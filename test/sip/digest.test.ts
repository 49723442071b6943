import { describe, expect, test } from 'vitest';
import { answerChallenge, isStale } from '../../sip/digest.ts';
import { createRequest } from '../../sip/message/index.ts';
import { DigestChallenger } from '../softphone/digest-challenger.ts';

const REQUEST = { status: 401, method: 'GET', uri: '/dir/index.html', username: 'Mufasa', password: 'Circle Of Life' };

describe('digest answer', () => {
  test('follows RFC 2069 without qop', () => {
    const nonce = 'dcd98b7102dd2f0e8b11d0f600bfb0c093';
    const answer = answerChallenge({ ...REQUEST, challenge: `Digest realm="testrealm@host.com", nonce="${nonce}"` });
    // md5(md5(Mufasa:testrealm@host.com:Circle Of Life):nonce:md5(GET:/dir/index.html))
    expect(answer?.value).toContain('response="670fd8c2df070c60b045671b8b24ff02"');
    expect(answer?.name).toBe('Authorization');
  });

  test.each([
    [401, 'MD5'],
    [407, 'MD5'],
    [401, 'SHA-256'],
    [407, 'SHA-256'],
  ] as const)('satisfies a server that requests %i and %s', (challenge, algorithm) => {
    const account = {
      username: 'tandem',
      password: 's3cret',
      realm: 'a, "b" realm'.replaceAll('"', ''),
      challenge,
      algorithm,
    };
    const server = new DigestChallenger(account);
    const request = createRequest({ method: 'INVITE', uri: 'sip:+1@carrier.example' });
    const refusal = server.refusalOf(request);
    const answer = answerChallenge({
      status: challenge,
      challenge: refusal?.headers[0]?.[1] ?? '',
      method: 'INVITE',
      uri: request.uri,
      username: 'tandem',
      password: 's3cret',
    });
    const again = createRequest({ method: 'INVITE', uri: request.uri, headers: [[answer!.name, answer!.value]] });
    expect(server.refusalOf(again)).toBeNull();
  });

  test('uses the first supported challenge of several', () => {
    const challenge =
      'Digest realm="x", nonce="n1", algorithm=SHA-512-256, qop="auth",Digest realm="x", nonce="n2", algorithm=MD5, qop="auth-int,auth"';
    expect(answerChallenge({ ...REQUEST, challenge })?.value).toContain('nonce="n2"');
  });

  test.each([
    'Negotiate abc==, Digest realm="x", nonce="n2"',
    'NTLM, Digest realm="x", nonce="n2"',
    'Bearer realm="Digest nonce=1", Digest\trealm = "x" ,nonce = "n2"',
    `${'a-'.repeat(1000)}, Digest realm="x", nonce="n2"`,
  ])('finds the supported challenge in %j', (challenge) => {
    expect(answerChallenge({ ...REQUEST, challenge })?.value).toContain('nonce="n2"');
  });

  test.each([
    ['another scheme', 'Basic realm="x"'],
    ['an unknown algorithm', 'Digest realm="x", nonce="n", algorithm=MD4'],
    ['only auth-int', 'Digest realm="x", nonce="n", qop="auth-int"'],
    ['no nonce', 'Digest realm="x"'],
    ['an empty challenge', ''],
  ])('does not exist for %s', (_what, challenge) => {
    expect(answerChallenge({ ...REQUEST, challenge })).toBeNull();
  });

  test('escapes user name and URI in the header', () => {
    const challenge = 'Digest realm="x", nonce="n"';
    const answer = answerChallenge({ ...REQUEST, username: 'a"\r\nX-Evil: 1', challenge });
    expect(answer?.value).toContain('username="a\\"X-Evil: 1"');
    expect(answer?.value).not.toMatch(/[\r\n]/);
  });

  test('distinguishes a stale nonce from a wrong password', () => {
    expect(isStale('Digest realm="x", nonce="n", stale=TRUE')).toBe(true);
    expect(isStale('Digest realm="x", nonce="n", stale=false')).toBe(false);
    expect(isStale('Digest realm="x", nonce="n"')).toBe(false);
  });
});
