import { randomBytes } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { createSecretBox } from '../../storage/secrets.ts';
import * as fc from '../properties.ts';

describe('secret box', () => {
  const box = createSecretBox(randomBytes(32));

  it('opens its own secrets for any text and context', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string(), (text, context) => {
        expect(box.open(box.seal(text, context), context)).toBe(text);
      }),
    );
  });

  it('seals the same text differently each time and hides it', () => {
    const text = 'a secret that is long enough';
    expect(box.seal(text, 'c').equals(box.seal(text, 'c'))).toBe(false);
    expect(box.seal(text, 'c').includes(text)).toBe(false);
  });

  it('rejects another context, another key, a changed byte and other data', () => {
    const sealed = box.seal('secret', 'call:1');
    expect(() => box.open(sealed, 'call:2')).toThrow(expect.objectContaining({ code: 'NOT_AUTHENTIC' }));
    const stranger = createSecretBox(randomBytes(32));
    expect(() => stranger.open(sealed, 'call:1')).toThrow(expect.objectContaining({ code: 'UNKNOWN_KEY' }));
    for (let index = 0; index < sealed.length; index += 1) {
      const changed = Buffer.from(sealed);
      changed[index]! ^= 1;
      expect(() => box.open(changed, 'call:1')).toThrow(expect.objectContaining({ name: 'SecretBoxError' }));
    }
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
        expect(() => box.open(bytes, 'call:1')).toThrow(expect.objectContaining({ name: 'SecretBoxError' }));
      }),
    );
  });

  it('requires a master key of 32 bytes', () => {
    expect(() => createSecretBox(Buffer.alloc(16))).toThrow(RangeError);
  });
});
