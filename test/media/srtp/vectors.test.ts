import { createSecretKey } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { AesCmCipher } from '../../../media/srtp/aes-cm.ts';
import { AesGcmCipher } from '../../../media/srtp/aes-gcm.ts';
import { SUITES } from '../../../media/srtp/crypto-suites.ts';
import { deriveSessionKeys, type SessionKeys } from '../../../media/srtp/session-keys.ts';
import { SrtpReceiver } from '../../../media/srtp/srtp-receiver.ts';
import { SrtpSender } from '../../../media/srtp/srtp-sender.ts';

function hex(text: string): Buffer {
  return Buffer.from(text.replace(/\s/g, ''), 'hex');
}

function secret(text: string) {
  return createSecretKey(hex(text));
}

function sessionKeys(encryption: string, salt: string): SessionKeys {
  return { encryption: secret(encryption), salt: hex(salt), authentication: createSecretKey(Buffer.alloc(20)) };
}

function roomy(packet: Buffer): Buffer {
  return Buffer.concat([packet, Buffer.alloc(20)]);
}

describe('RFC 3711', () => {
  it('gives the key stream of Appendix B.2, up to block 0xFF01', () => {
    const keys = sessionKeys('2B7E151628AED2A6ABF7158809CF4F3C', 'F0F1F2F3F4F5F6F7F8F9FAFBFCFD');
    const cipher = new AesCmCipher(SUITES.AES_CM_128_HMAC_SHA1_80, { rtp: keys, rtcp: keys });
    const headerBytes = 12;
    const bytes = headerBytes + 0xff02 * 16;
    const packet = Buffer.alloc(bytes + 10);
    cipher.sealRtp(packet, headerBytes, bytes, 0, 0, 0);
    const block = (index: number) => packet.subarray(headerBytes + index * 16, headerBytes + index * 16 + 16);
    expect(block(0)).toEqual(hex('E03EAD0935C95E80E166B16DD92B4EB4'));
    expect(block(1)).toEqual(hex('D23513162B02D0F72A43A2FE4A5F97AB'));
    expect(block(2)).toEqual(hex('41E95B3BB0A2E8DD477901E4FCA894C0'));
    expect(block(0xfeff)).toEqual(hex('EC8CDF7398607CB0F2D21675EA9EA1E4'));
    expect(block(0xff00)).toEqual(hex('362B7C3C6773516318A077D7FC5073AE'));
    expect(block(0xff01)).toEqual(hex('6A2CC3787889374FBEB4C81B17BA6C44'));
  });

  it('derives the session keys of Appendix B.3', () => {
    const master = secret('E1F97A0D3E018BE0D64FA32C06DE4139 0EC675AD498AFEEBB6960B3AABE6');
    const { rtp } = deriveSessionKeys(SUITES.AES_CM_128_HMAC_SHA1_80, master);
    expect(rtp.encryption.export()).toEqual(hex('C61E7A93744F39EE10734AFE3FF7A087'));
    expect(rtp.salt).toEqual(hex('30CBBC08863D8C85D49DB34A9AE1'));
    expect(rtp.authentication.export()).toEqual(hex('CEBE321F6FF7716B6FD4AB49AF256A156D38BAA4'));
  });
});

describe('libsrtp', () => {
  const CLEAR_RTP = hex('800f1234 decafbad cafebabe abababab abababab abababab abababab');
  const CLEAR_RTCP = hex('81c8000b cafebabe abababab abababab abababab abababab');
  const CM_KEY = 'E1F97A0D3E018BE0D64FA32C06DE4139 0EC675AD498AFEEBB6960B3AABE6';

  for (const { suite, key, rtp, rtcp } of [
    {
      suite: 'AES_CM_128_HMAC_SHA1_80',
      key: CM_KEY,
      rtp: '800f1234 decafbad cafebabe 4e55dc4c e79978d8 8ca4d215 949d2402 b78d6acc 99ea179b 8dbb',
      rtcp: '81c8000b cafebabe 7128035b e487b9bd bef89041 f977a5a8 80000001 993e08cd 54d6c123 0798',
    },
    {
      suite: 'AES_CM_128_HMAC_SHA1_32',
      key: CM_KEY,
      rtp: '800f1234 decafbad cafebabe 4e55dc4c e79978d8 8ca4d215 949d2402 b78d6acc',
      rtcp: '81c8000b cafebabe 7128035b e487b9bd bef89041 f977a5a8 80000001 993e08cd 54d6c123 0798',
    },
    {
      suite: 'AEAD_AES_128_GCM',
      key: '000102030405060708090a0b0c0d0e0f a0a1a2a3a4a5a6a7a8a9aaab',
      rtp: '800f1234 decafbad cafebabe c5002ede 04cfdd2e b91159e0 880aa06e d2976826 f796b201 df3131a1 27e8a392',
      rtcp: '81c8000b cafebabe c98b8b5d f0392a55 852b6c21 ac8e7025 c52c6fbe a2b3b446 ea31123b a88ce61e 80000001',
    },
  ] as const) {
    it(`${suite}: produces and decrypts the published bytes`, () => {
      const sender = new SrtpSender({ suite, master: secret(key), ssrc: 0xcafebabe });
      const receiver = new SrtpReceiver({ suite, master: secret(key) });
      const rtpPacket = roomy(CLEAR_RTP);
      const sealedRtp = rtpPacket.subarray(0, sender.protectRtp(rtpPacket, CLEAR_RTP.length));
      expect(sealedRtp).toEqual(hex(rtp));
      expect(sealedRtp.subarray(0, receiver.openRtp(sealedRtp))).toEqual(CLEAR_RTP);
      // The published packet is the second of its stream.
      sender.protectRtcp(roomy(CLEAR_RTCP), CLEAR_RTCP.length);
      const rtcpPacket = roomy(CLEAR_RTCP);
      const sealedRtcp = rtcpPacket.subarray(0, sender.protectRtcp(rtcpPacket, CLEAR_RTCP.length));
      expect(sealedRtcp).toEqual(hex(rtcp));
      expect(sealedRtcp.subarray(0, receiver.openRtcp(sealedRtcp))).toEqual(CLEAR_RTCP);
    });
  }
});

describe('RFC 7714', () => {
  const SALT = '51756964 2070726f 2071756f';
  const KEY = '000102030405060708090a0b0c0d0e0f';
  const LONG_KEY = `${KEY}101112131415161718191a1b1c1d1e1f`;
  const SSRC = 0x5501a0b2;
  const RTP = hex(
    '8040f17b 8041f8d3 5501a0b2 47616c6c 69612065 7374206f 6d6e6973 20646976 69736120 696e2070 61727465 73207472 6573',
  );
  const SEALED_RTP = {
    AEAD_AES_128_GCM:
      '8040f17b 8041f8d3 5501a0b2 f24de3a3 fb34de6c acba861c 9d7e4bca be633bd5 0d294e6f 42a5f47a 51c7d19b 36de3adf 8833899d 7f27beb1 6a9152cf 765ee439 0cce',
    AEAD_AES_256_GCM:
      '8040f17b 8041f8d3 5501a0b2 32b1de78 a822fe12 ef9f78fa 332e33aa b1801238 9a58e2f3 b50b2a02 76ffae0f 1ba63799 b87b7aa3 db36dfff d6b0f9bb 7878d7a7 6c13',
  } as const;
  const RTCP_SSRC = 0x4d617273;
  const RTCP_INDEX = 0x5d4;
  const RTCP = hex(
    '81c8000d 4d617273 4e545031 4e545032 52545020 0000042a 0000e930 4c756e61 deadbeef deadbeef deadbeef deadbeef deadbeef',
  );
  const SEALED_RTCP = {
    AEAD_AES_128_GCM:
      '81c8000d 4d617273 63e94885 dcdab67c a727d766 2f6b7e99 7ff5c0f7 6c06f32d c676a5f1 730d6fda 4ce09b46 86303ded 0bb9275b c84aa458 96cf4d2f c5abf872 45d9eade 800005d4',
    AEAD_AES_256_GCM:
      '81c8000d 4d617273 d50ae4d1 f5ce5d30 4ba297e4 7d470c28 2c3ece5d bffe0a50 a2eaa5c1 110555be 8415f658 c61de047 6f1b6fad 1d1eb30c 4446839f 57ff6f6c b26ac3be 800005d4',
  } as const;

  for (const suite of ['AEAD_AES_128_GCM', 'AEAD_AES_256_GCM'] as const) {
    const keys = sessionKeys(suite === 'AEAD_AES_128_GCM' ? KEY : LONG_KEY, SALT);
    const cipher = new AesGcmCipher(SUITES[suite], { rtp: keys, rtcp: keys });

    it(`${suite}: encrypts and decrypts the RTP packet of section 16`, () => {
      const packet = Buffer.concat([RTP, Buffer.alloc(16)]);
      cipher.sealRtp(packet, 12, RTP.length, SSRC, 0, 0xf17b);
      expect(packet).toEqual(hex(SEALED_RTP[suite]));
      expect(cipher.openRtp(packet, 12, RTP.length, SSRC, 0, 0xf17b)).toBe(true);
      expect(packet.subarray(0, RTP.length)).toEqual(RTP);
    });

    it(`${suite}: encrypts and decrypts the RTCP packet of section 17`, () => {
      const packet = Buffer.concat([RTCP, Buffer.alloc(20)]);
      cipher.sealRtcp(packet, RTCP.length, RTCP_SSRC, RTCP_INDEX);
      expect(packet).toEqual(hex(SEALED_RTCP[suite]));
      expect(cipher.indexWordOf(packet, packet.length)).toBe(0x8000_0000 + RTCP_INDEX);
      expect(cipher.openRtcp(packet, RTCP.length, RTCP_SSRC, RTCP_INDEX)).toBe(true);
      expect(packet.subarray(0, RTCP.length)).toEqual(RTCP);
    });
  }
});
