import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { mintWebhookSecret, requireWebhookSecret, signWebhook } from '../../actors/webhooks/signature.ts';
import * as fc from '../properties.ts';

const rawBody = '{"event":"stt.completed","text":"नमस्ते"}';
const sign = (...secrets: string[]) =>
  signWebhook({ secrets, webhookId: 'msg_1', timestampS: Math.floor(Date.now() / 1000), rawBody });

describe('standardwebhooks library', () => {
  test('verifies a generated secret, and rejects another body, id or secret', () => {
    const secret = mintWebhookSecret();
    const headers = sign(secret);
    const webhook = new Webhook(secret);
    expect(webhook.verify(rawBody, headers)).toEqual(JSON.parse(rawBody));
    expect(() => webhook.verify(`${rawBody} `, headers)).toThrow('No matching signature');
    expect(() => webhook.verify(rawBody, { ...headers, 'webhook-id': 'msg_2' })).toThrow('No matching signature');
    expect(() => new Webhook(mintWebhookSecret()).verify(rawBody, headers)).toThrow('No matching signature');
  });

  test("verifies a user's text as the raw key", () => {
    const secret = 'correct horse, battery & "staple" ~';
    expect(new Webhook(secret, { format: 'raw' }).verify(rawBody, sign(secret))).toEqual(JSON.parse(rawBody));
  });

  test('verifies either secret when two sign', () => {
    const [old, fresh] = [mintWebhookSecret(), mintWebhookSecret()];
    const headers = sign(fresh, old);
    expect(headers['webhook-signature']).toMatch(/^v1,[\w+/]{43}= v1,[\w+/]{43}=$/);
    for (const secret of [old, fresh]) {
      expect(new Webhook(secret).verify(rawBody, headers)).toEqual(JSON.parse(rawBody));
    }
  });

  test('decodes any base64 key after whsec_ as we do', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 16, maxLength: 64 }), (key) => {
        const secret = `whsec_${Buffer.from(key).toString('base64')}`;
        expect(() => requireWebhookSecret(secret)).not.toThrow();
        expect(new Webhook(secret).verify(rawBody, sign(secret))).toEqual(JSON.parse(rawBody));
      }),
    );
  });
});

test('generated secrets consist of whsec_ and 32 random bytes', () => {
  const minted = Array.from({ length: 100 }, mintWebhookSecret);
  expect(new Set(minted).size).toBe(100);
  for (const secret of minted) {
    expect(Buffer.from(secret.replace(/^whsec_/, ''), 'base64')).toHaveLength(32);
    expect(() => requireWebhookSecret(secret)).not.toThrow();
  }
});

describe('user-supplied webhook secret', () => {
  test.each([
    ['sixteen characters', 'x'.repeat(16)],
    ['sixteen bytes in base64', `whsec_${Buffer.alloc(16).toString('base64')}`],
  ])('accepts %s', (_name, secret) => {
    expect(() => requireWebhookSecret(secret)).not.toThrow();
  });

  test.each([
    ['only the prefix', 'whsec_'],
    ['fifteen bytes in base64', `whsec_${Buffer.alloc(15).toString('base64')}`],
    ['base64url', `whsec_${Buffer.alloc(32, 0xff).toString('base64url')}`],
    ['base64 without its padding', `whsec_${Buffer.alloc(32).toString('base64').replace('=', '')}`],
    ['no base64', 'whsec_not base64 at all, I am afraid'],
  ])('rejects %s', (_name, secret) => {
    expect(() => requireWebhookSecret(secret)).toThrow(
      expect.objectContaining({
        code: 'VALIDATION_FAILED',
        details: [{ path: 'secret', message: expect.any(String) }],
      }),
    );
  });
});
