import { describe, expect, it } from 'vitest';
import { parseMessage } from '../../../sip/message/index.ts';
import { maskMessage } from '../../../sip/trace/masking.ts';
import * as fc from '../../properties.ts';

const SECRET = 'S3cretS3cret';

function invite(headers: readonly string[], body = ''): string {
  const lines = ['INVITE sip:bob@example.com SIP/2.0', 'Call-ID: a@b', ...headers, `Content-Length: ${body.length}`];
  return `${lines.join('\r\n')}\r\n\r\n${body}`;
}

describe('masking', () => {
  it('hides the response of a digest and keeps the rest', () => {
    const masked = maskMessage(
      invite([
        `Authorization: Digest username="tandem", realm="carrier", nonce="n1", uri="sip:bob@example.com", response="${SECRET}", cnonce="${SECRET}", qop=auth, nc=00000001`,
      ]),
    );
    expect(masked).toContain(
      'Authorization: Digest username="tandem", realm="carrier", nonce="n1", uri="sip:bob@example.com", response="***", cnonce="***", qop=auth, nc=00000001\r\n',
    );
  });

  it('hides the credentials of other schemes', () => {
    expect(maskMessage(invite([`Proxy-Authorization: Basic ${SECRET}`]))).toContain(
      'Proxy-Authorization: Basic ***\r\n',
    );
    expect(maskMessage(invite([`Authorization: ${SECRET}`]))).toContain('Authorization: ***\r\n');
  });

  it('hides passwords in URIs and keys in bodies, keeping the length', () => {
    const body = [
      'v=0',
      `k=clear:${SECRET}`,
      `a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:${SECRET}|2^20|1:4`,
      `a=key-mgmt:mikey ${SECRET}`,
      `a=ice-pwd:${SECRET}`,
      '',
    ].join('\r\n');
    const masked = maskMessage(invite([`Contact: <sip:bob:${SECRET}@10.0.0.1:5060;ob>`, 'To: <sip:a@b:5060>'], body));
    expect(masked).not.toContain(SECRET);
    expect(masked).toContain('Contact: <sip:bob:***@10.0.0.1:5060;ob>\r\nTo: <sip:a@b:5060>\r\n');
    expect(masked).toContain('inline:************|2^20|1:4');
    expect(parseMessage(Buffer.from(masked, 'latin1')).body.length).toBe(body.length);
  });

  it.each([
    { type: 'application/dtmf-relay', body: 'Signal=5\r\nDuration=160\r\n', shown: 'Signal=*\r\nDuration=160\r\n' },
    { type: 'Application/DTMF-Relay', body: 'duration= 250\nsignal = 11', shown: 'duration= 250\nsignal =***' },
    { type: 'application/dtmf', body: '#', shown: '*' },
    { type: 'application/dtmf', body: '5\r\n', shown: '*\r\n' },
    { type: 'text/plain', body: 'Signal=5\r\n', shown: 'Signal=5\r\n' },
  ])('hides the digit of an INFO with $type: $body', ({ type, body, shown }) => {
    for (const name of ['Content-Type', 'c']) {
      const head = `INFO sip:a@b SIP/2.0\r\nCSeq: 5 INFO\r\n${name}: ${type}\r\n\r\n`;
      expect(maskMessage(head + body)).toBe(head + shown);
    }
  });

  it('leaves a message without secrets unchanged', () => {
    const plain = invite(['From: "A: b" <sip:+9198@[2001:db8::1]:5060>;tag=1'], 'v=0\r\nc=IN IP4 10.0.0.1\r\n');
    expect(maskMessage(plain)).toBe(plain);
  });

  it('hides secrets in any header notation', () => {
    const name = fc.constantFrom('Authorization', 'AUTHORIZATION ', 'Proxy-Authorization', 'authentication-info\t');
    const fold = fc.constantFrom('', ' ', '\r\n ', '\n\t', '\r ');
    const key = fc.constantFrom('response', 'RESPONSE', 'cnonce', 'rspauth', 'x-token', 'password');
    const value = fc.constantFrom(`"${SECRET}"`, SECRET, `"${SECRET}`, `'${SECRET}'`, `"\\"${SECRET}"`);
    fc.assert(
      fc.property(name, fold, fold, key, fold, value, (header, first, second, parameter, third, secret) => {
        const text = `${header}:${first} Digest ${second}realm="x",${second}${parameter}${third}=${third}${secret}`;
        expect(maskMessage(invite([text]))).not.toContain(SECRET);
        expect(maskMessage(invite([], `${text}\r\n`))).not.toContain(SECRET);
      }),
    );
  });

  it('handles hostile messages in time', () => {
    for (const part of ['sip:', 'inline:', 'a=key-mgmt:', 'Authorization:', '\r\n ', 'x', 'x=', '"', '@', 'k=']) {
      const hostile = invite(['Authorization: Digest '], '').replace(
        'Digest ',
        () => `Digest ${part.repeat(30_000 / part.length)}`,
      );
      expect(maskMessage(hostile).length).toBeGreaterThan(0);
      expect(maskMessage(invite([], part.repeat(60_000 / part.length))).length).toBeGreaterThan(60);
    }
  });
});
