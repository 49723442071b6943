import { createHmac } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { CALLBACK_SIGNATURE_HEADER, signCallback, verifyCallbackSignature } from '../../actors/callbacks/signature.ts';
import * as fc from '../properties.ts';

const secret = 'a-secret-of-enough-characters';
const rawBody = '{"event":"call.completed","text":"नमस्ते"}';
const timestampS = 1_790_000_000;
const headers = signCallback({ secret, webhookId: 'evt_1', timestampS, rawBody });
const header = headers[CALLBACK_SIGNATURE_HEADER] ?? '';
const verify = (changes: Partial<Parameters<typeof verifyCallbackSignature>[0]> = {}) =>
  verifyCallbackSignature({ secret, rawBody, header, nowS: timestampS, ...changes });

test('x-qcall-signature is t=<unix s>,v1=<hex HMAC-SHA256 of t, a dot and the raw body>', () => {
  const expected = createHmac('sha256', secret).update(`1790000000.${rawBody}`).digest('hex');
  expect(headers['x-qcall-signature']).toBe(`t=1790000000,v1=${expected}`);
});

test('the standardwebhooks library verifies a callback with the raw secret, and rejects an altered one', () => {
  const nowS = Math.floor(Date.now() / 1000);
  const fresh = signCallback({ secret, webhookId: 'evt_1', timestampS: nowS, rawBody });
  const webhook = new Webhook(secret, { format: 'raw' });
  expect(webhook.verify(rawBody, fresh)).toEqual(JSON.parse(rawBody));
  expect(() => webhook.verify(`${rawBody} `, fresh)).toThrow('No matching signature');
  expect(() => webhook.verify(rawBody, { ...fresh, 'webhook-id': 'evt_2' })).toThrow('No matching signature');
});

describe('verifyCallback', () => {
  test('accepts a signed body, as text or bytes', () => {
    expect(verify()).toEqual({ ok: true });
    expect(verify({ rawBody: Buffer.from(rawBody) })).toEqual({ ok: true });
  });

  test('accepts one valid signature among several, as during a secret rotation', () => {
    expect(verify({ header: header.replace('v1=', `v1=${'0'.repeat(64)},v1=`) })).toEqual({ ok: true });
  });

  test.each([
    ['no header', { header: undefined }, 'missing'],
    ['an empty header', { header: '' }, 'missing'],
    ['another secret', { secret: 'another-secret-altogether' }, 'mismatch'],
    ['another body', { rawBody: `${rawBody}\n` }, 'mismatch'],
    ['another time', { header: header.replace('t=179', 't=178') }, 'mismatch'],
    ['an old one', { nowS: timestampS + 301 }, 'stale'],
    ['one from the future', { nowS: timestampS - 301 }, 'stale'],
    ['no time', { header: header.slice(header.indexOf('v1=')) }, 'malformed'],
    ['two times', { header: `t=1,${header}` }, 'malformed'],
    ['a time with a leading zero', { header: header.replace('t=', 't=0') }, 'malformed'],
    ['no signature', { header: 't=1790000000' }, 'malformed'],
    ['a short signature', { header: 't=1790000000,v1=abcd' }, 'malformed'],
    [
      'an upper-case signature',
      { header: header.toUpperCase().replace('T=', 't=').replace('V1=', 'v1=') },
      'malformed',
    ],
    ['a header of 100 kB', { header: `${header},${'v1='.repeat(33_000)}` }, 'malformed'],
  ])('rejects %s', (_name, changes, reason) => {
    expect(verify(changes)).toEqual({ ok: false, reason });
  });

  test('accepts a timestamp up to five minutes off', () => {
    expect(verify({ nowS: timestampS + 300 })).toEqual({ ok: true });
    expect(verify({ nowS: timestampS + 301 })).toEqual({ ok: false, reason: 'stale' });
  });

  test('rejects any random header without throwing', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        expect(verify({ header: text }).ok).toBe(false);
      }),
    );
  });

  test('verifies any body with any secret', () => {
    const anyBytes = fc.string({ unit: 'grapheme' });
    fc.assert(
      fc.property(anyBytes, anyBytes, (body, key) => {
        const signed = signCallback({ secret: key, webhookId: 'x', timestampS, rawBody: body })[
          CALLBACK_SIGNATURE_HEADER
        ];
        expect(verify({ secret: key, rawBody: body, header: signed })).toEqual({ ok: true });
      }),
    );
  });
});
