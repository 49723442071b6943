import { describe, expect, it } from 'vitest';
import type { SrtpKeys, SrtpSuite } from '../../machines/events.ts';
import { LegKeys } from '../../sip/leg-keys.ts';
import { type CryptoLine, cryptoValuesOf, formatCrypto, MASTER_KEY_BYTES, readCrypto } from '../../sip/sdes.ts';
import { buildAnswer, buildOffer, type LocalSession, type Reader, readAnswer, readOffer } from '../../sip/sdp.ts';
import * as fc from '../properties.ts';
import { codeOf } from './thrown-code.ts';

const SUITES = Object.keys(MASTER_KEY_BYTES) as SrtpSuite[];
const KEY = 'WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz';

function valueFrom(line: CryptoLine): string {
  const { id, suite, config } = formatCrypto(line);
  return `${id} ${suite} ${config}`;
}

function lineOf(suite: SrtpSuite, octet = 1, tag = '1'): CryptoLine {
  return { tag, suite, masterKey: Buffer.alloc(MASTER_KEY_BYTES[suite], octet) };
}

describe('a=crypto', () => {
  it('parses its own lines with every suite', () => {
    const line = fc.record({
      tag: fc.nat(999_999_999).map(String),
      suite: fc.constantFrom(...SUITES),
      seed: fc.nat(255),
    });
    fc.assert(
      fc.property(line, ({ tag, suite, seed }) => {
        expect(readCrypto([valueFrom(lineOf(suite, seed, tag))])).toEqual([lineOf(suite, seed, tag)]);
      }),
    );
  });

  it.each([
    ['the example of RFC 4568', `1 AES_CM_128_HMAC_SHA1_80 inline:${KEY}|2^20`],
    ['a lifetime in digits', `1 AES_CM_128_HMAC_SHA1_80 inline:${KEY}|1048576`],
    ['a hint for the replay window', `1 AES_CM_128_HMAC_SHA1_32 inline:${KEY} WSH=128`],
    ['a session parameter that may be ignored', `1 AES_CM_128_HMAC_SHA1_80 inline:${KEY} -NEW=1`],
    ['another letter case', `1 aes_cm_128_hmac_sha1_80 INLINE:${KEY}`],
  ])('accepts %s', (_name, value) => {
    expect(readCrypto([value])).toMatchObject([{ tag: '1', masterKey: Buffer.from(KEY, 'base64') }]);
  });

  it.each([
    ['an unsupported suite', `1 F8_128_HMAC_SHA1_80 inline:${KEY}`],
    ['an MKI', `1 AES_CM_128_HMAC_SHA1_80 inline:${KEY}|2^20|1:4`],
    ['an MKI without a lifetime', `1 AES_CM_128_HMAC_SHA1_80 inline:${KEY}|1:4`],
    ['several keys', `1 AES_CM_128_HMAC_SHA1_80 inline:${KEY}|2^20|1:4;inline:${KEY}|2^20|2:4`],
    ['a lifetime beyond 2^48', `1 AES_CM_128_HMAC_SHA1_80 inline:${KEY}|2^49`],
    ['an empty lifetime', `1 AES_CM_128_HMAC_SHA1_80 inline:${KEY}|0`],
    ['a key of another length', '1 AES_CM_128_HMAC_SHA1_80 inline:WVNfX19z'],
    ['a key of another suite', `1 AEAD_AES_256_GCM inline:${KEY}`],
    ['a key that is not base64', `1 AES_CM_128_HMAC_SHA1_80 inline:${'*'.repeat(40)}`],
    ['another key method', `1 AES_CM_128_HMAC_SHA1_80 uri:${KEY}`],
    ['a key derivation rate', `1 AES_CM_128_HMAC_SHA1_80 inline:${KEY} KDR=1`],
    ['unencrypted RTP', `1 AES_CM_128_HMAC_SHA1_80 inline:${KEY} UNENCRYPTED_SRTP`],
    ['unencrypted RTP as the second parameter', `1 AES_CM_128_HMAC_SHA1_80 inline:${KEY} WSH=64 UNENCRYPTED_SRTCP`],
    ['unauthenticated RTP', `1 AES_CM_128_HMAC_SHA1_80 inline:${KEY} UNAUTHENTICATED_SRTP`],
    ['an unknown session parameter', `1 AES_CM_128_HMAC_SHA1_80 inline:${KEY} NEW`],
    ['a tag that is not a number', `one AES_CM_128_HMAC_SHA1_80 inline:${KEY}`],
    ['no key', '1 AES_CM_128_HMAC_SHA1_80'],
    ['nothing', ''],
    ['a prototype property', `1 constructor inline:${KEY}`],
  ])('rejects %s', (_name, value) => {
    expect(readCrypto([value])).toEqual([]);
  });

  it('survives any text and parses a bounded number of lines', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), (text) => {
        for (const { masterKey, suite } of readCrypto([
          text,
          `1 ${text}`,
          `1 AES_CM_128_HMAC_SHA1_80 inline:${text}`,
        ])) {
          expect(masterKey).toHaveLength(MASTER_KEY_BYTES[suite]);
        }
        expect(cryptoValuesOf(`m=audio\na=crypto:${text}`).length).toBeGreaterThan(0);
      }),
    );
    expect(readCrypto(Array.from({ length: 1000 }, () => valueFrom(lineOf(SUITES[0]!))))).toHaveLength(20);
  });
});

const LOCAL: LocalSession = {
  host: '192.0.2.1',
  rtpPort: 40_000,
  codecs: ['PCMU', 'PCMA'],
  sessionId: 7,
  sessionVersion: 1,
};
const PEER: LocalSession = { ...LOCAL, host: '198.51.100.9', rtpPort: 5004 };

/** One side of an offer/answer exchange. */
function side(local: LocalSession, encryption: 'none' | 'optional' | 'required') {
  const keys = new LegKeys(encryption);
  const reader = (readKeys: NonNullable<Reader['readKeys']>): Reader => ({ ...local, encryption, readKeys });
  return {
    keys,
    offer: () => buildOffer(local, { encryption, crypto: keys.offer() }),
    answer(sdp: string) {
      const read = readOffer(
        sdp,
        reader((values) => keys.readOffer(values)),
      );
      keys.agree(read.keys);
      return { media: read.media, sdp: buildAnswer(local, read, read.keys && keys.answerTo(read.keys)) };
    },
    take(sdp: string) {
      const read = readAnswer(
        sdp,
        reader((values) => keys.readAnswer(values)),
      );
      keys.agree(read.keys);
      return read.media;
    },
  };
}

function expectSameKeys(ours: SrtpKeys | undefined, theirs: SrtpKeys | undefined) {
  expect(ours!.suite).toBe(theirs!.suite);
  expect(ours!.local.export()).toEqual(theirs!.remote.export());
  expect(ours!.remote.export()).toEqual(theirs!.local.export());
}

describe('SDES offer and answer', () => {
  it('require encryption with RTP/SAVP and four suites, each with its own key', () => {
    const offer = side(LOCAL, 'required').offer();
    expect(offer).toContain('m=audio 40000 RTP/SAVP 0 8 101');
    const lines = readCrypto(cryptoValuesOf(offer)[0]!);
    expect(lines.map(({ tag, suite }) => `${tag} ${suite}`)).toEqual([
      '1 AES_CM_128_HMAC_SHA1_80',
      '2 AEAD_AES_256_GCM',
      '3 AEAD_AES_128_GCM',
      '4 AES_CM_128_HMAC_SHA1_32',
    ]);
    expect(new Set(lines.map(({ masterKey }) => masterKey.toString('hex').slice(0, 32))).size).toBe(4);
    expect(side(LOCAL, 'required').offer()).not.toContain(lines[0]!.masterKey.toString('base64'));
  });

  it('offer optional encryption with RTP/AVP, and plain RTP without a=crypto', () => {
    expect(side(LOCAL, 'optional').offer()).toMatch(/m=audio 40000 RTP\/AVP [\s\S]*a=crypto:1 AES_CM_128_HMAC_SHA1_80/);
    expect(side(LOCAL, 'none').offer()).not.toContain('crypto');
  });

  for (const [ours, theirs] of [
    ['required', 'required'],
    ['required', 'optional'],
    ['optional', 'required'],
    ['optional', 'optional'],
  ] as const) {
    it(`agree on keys with encryption ${ours} on one side and ${theirs} on the other`, () => {
      const caller = side(LOCAL, ours);
      const called = side(PEER, theirs);
      const { media, sdp } = called.answer(caller.offer());
      expect(sdp).toContain(ours === 'required' ? 'RTP/SAVP' : 'RTP/AVP');
      expectSameKeys(caller.take(sdp).srtp, media.srtp);
    });
  }

  it('fall back to plain RTP only where encryption is optional', () => {
    const caller = side(LOCAL, 'optional');
    const { sdp, media } = side(PEER, 'none').answer(caller.offer());
    expect(media.srtp).toBeUndefined();
    expect(caller.take(sdp).srtp).toBeUndefined();
    expect(codeOf(() => side(LOCAL, 'required').take(sdp))).toBe('sdp.not_encrypted');
    expect(codeOf(() => side(PEER, 'none').answer(side(LOCAL, 'required').offer()))).toBe('sdp.no_audio');
    expect(codeOf(() => side(PEER, 'required').answer(side(LOCAL, 'none').offer()))).toBe('sdp.not_encrypted');
  });

  it('reject an answer with another tag, another suite or the own key', () => {
    const caller = side(LOCAL, 'required');
    const offer = caller.offer();
    const answered = side(PEER, 'required').answer(offer).sdp;
    for (const altered of [
      answered.replace('a=crypto:1 ', 'a=crypto:9 '),
      answered.replace('a=crypto:1 ', 'a=crypto:4 '),
      answered.replace(/a=crypto:.*/, `a=crypto:${cryptoValuesOf(offer)[0]![0]}`),
      answered.replace(/(a=crypto:.*)/, '$1 UNENCRYPTED_SRTP'),
    ]) {
      expect(
        codeOf(() => caller.take(altered)),
        altered,
      ).toBe('sdp.not_encrypted');
    }
    expect(caller.take(answered).srtp).toBeDefined();
  });

  it('use the first supported line and echo its tag', () => {
    const offer = side(LOCAL, 'required')
      .offer()
      .replace('a=crypto:1 AES_CM_128_HMAC_SHA1_80', 'a=crypto:1 F8_128_HMAC_SHA1_80');
    const { sdp, media } = side(PEER, 'optional').answer(offer);
    expect(cryptoValuesOf(sdp)[0]).toHaveLength(1);
    expect(sdp).toContain('a=crypto:2 AEAD_AES_256_GCM inline:');
    expect(media.srtp?.suite).toBe('AEAD_AES_256_GCM');
  });

  it('prefer a stream with keys', () => {
    const secure = side(PEER, 'required').offer();
    const two = secure.replace('m=audio', 'm=audio 5000 RTP/AVP 0\r\nm=audio');
    const { sdp, media } = side(LOCAL, 'optional').answer(two);
    expect(media).toMatchObject({ rtpPort: 5004, srtp: { suite: 'AES_CM_128_HMAC_SHA1_80' } });
    expect(sdp).toMatch(/m=audio 0 RTP\/AVP 0[\s\S]*m=audio 40000 RTP\/SAVP/);
  });

  it('keep unchanged keys and accept a new one of the peer beside the own', () => {
    const caller = side(LOCAL, 'required');
    const called = side(PEER, 'required');
    const first = caller.take(called.answer(caller.offer()).sdp).srtp!;
    const refreshed = caller.answer(called.offer()).media.srtp!;
    expect(refreshed).toBe(first);
    const renewed = caller.answer(side(PEER, 'required').offer()).media.srtp!;
    expect(renewed.serial).toBe(first.serial + 1);
    expect(renewed.local.export()).toEqual(first.local.export());
    expect(renewed.remote.export()).not.toEqual(first.remote.export());
  });

  it('keep the current key when an offer lists another suite first', () => {
    const caller = side(LOCAL, 'required');
    const called = side(PEER, 'required');
    const first = caller.take(called.answer(caller.offer()).sdp).srtp!;
    const other = `a=crypto:7 ${valueFrom(lineOf('AEAD_AES_256_GCM')).slice(2)}\r\na=crypto`;
    const { media, sdp } = caller.answer(called.offer().replace('a=crypto', other));
    expect(media.srtp).toBe(first);
    expect(sdp).toContain('a=crypto:1 AES_CM_128_HMAC_SHA1_80');
  });

  it('create a new own key when the suite changes, and never reuse an old one', () => {
    const caller = side(LOCAL, 'required');
    const seen = new Set<string>();
    caller.take(side(PEER, 'required').answer(caller.offer()).sdp);
    for (const suite of [...SUITES, ...SUITES]) {
      const offer = side(PEER, 'required')
        .offer()
        .replace(/a=crypto:.*\r\n/g, '');
      const value = valueFrom(lineOf(suite, seen.size + 1));
      const { srtp } = caller.answer(`${offer}a=crypto:${value}\r\n`).media;
      seen.add(Buffer.from(srtp!.local.export()).toString('hex'));
    }
    expect(seen.size).toBe(2 * SUITES.length);
  });

  it('hide keys in printed media', () => {
    const caller = side(LOCAL, 'required');
    const media = caller.take(side(PEER, 'required').answer(caller.offer()).sdp);
    const key = Buffer.from(media.srtp!.local.export());
    for (const printed of [JSON.stringify(media), String(media.srtp!.local)]) {
      expect(printed).not.toContain(key.toString('base64').slice(0, 10));
      expect(printed).not.toContain(key.toString('hex').slice(0, 10));
    }
  });
});
