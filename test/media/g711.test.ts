import { describe, expect, it } from 'vitest';
import {
  ALAW_SILENCE,
  ALAW_TO_LINEAR,
  ALAW_TO_MULAW,
  decodeG711,
  encodeG711,
  LINEAR_TO_ALAW,
  LINEAR_TO_MULAW,
  MULAW_SILENCE,
  MULAW_TO_ALAW,
  MULAW_TO_LINEAR,
  transcodingTable,
} from '../../media/codecs/g711.ts';
import { tone } from '../../media/dsp/tones.ts';
import * as fc from '../properties.ts';

const sample = fc.integer({ min: -32768, max: 32767 });

describe('G.711', () => {
  it('decodes extreme and middle octets to the values of the recommendation', () => {
    // Decoder outputs of ITU-T G.711 tables 2a/2b (mu-law, 14 bit) times 4 and 1a/1b (A-law, 13 bit) times 8.
    expect([0x00, 0x80, 0x7f, 0xff].map((octet) => MULAW_TO_LINEAR[octet])).toEqual([-32124, 32124, 0, 0]);
    expect([0x2a, 0xaa, 0x55, 0xd5].map((octet) => ALAW_TO_LINEAR[octet])).toEqual([-32256, 32256, -8, 8]);
    expect(MULAW_TO_LINEAR[MULAW_SILENCE]).toBe(0);
    expect(ALAW_TO_LINEAR[ALAW_SILENCE]).toBe(8);
  });

  it('encodes every decoded octet to itself, except the negative zero of mu-law', () => {
    for (let octet = 0; octet < 256; octet++) {
      if (octet !== 0x7f) expect(LINEAR_TO_MULAW[MULAW_TO_LINEAR[octet]! & 0xffff]).toBe(octet);
      expect(LINEAR_TO_ALAW[ALAW_TO_LINEAR[octet]! & 0xffff]).toBe(octet);
    }
  });

  it('errs by at most half a step of its segment', () => {
    fc.assert(
      fc.property(sample, (value) => {
        const mulaw = MULAW_TO_LINEAR[LINEAR_TO_MULAW[value & 0xffff]!]!;
        const alaw = ALAW_TO_LINEAR[LINEAR_TO_ALAW[value & 0xffff]!]!;
        const clipped = Math.max(-32635, Math.min(32635, value));
        expect(Math.abs(mulaw - clipped)).toBeLessThanOrEqual((Math.abs(clipped) + 132) / 32 + 1);
        expect(Math.abs(alaw - value)).toBeLessThanOrEqual(Math.max(16, Math.abs(value) / 31 + 1));
      }),
    );
  });

  it('transcodes with the error of the coarser law at most, and back to the same level', () => {
    for (let octet = 0; octet < 256; octet++) {
      const original = MULAW_TO_LINEAR[octet]!;
      const asAlaw = ALAW_TO_LINEAR[MULAW_TO_ALAW[octet]!]!;
      expect(Math.abs(asAlaw - original)).toBeLessThanOrEqual(Math.max(16, Math.abs(original) / 16));
      const back = MULAW_TO_LINEAR[ALAW_TO_MULAW[MULAW_TO_ALAW[octet]!]!]!;
      expect(Math.abs(back - original)).toBeLessThanOrEqual(Math.max(32, Math.abs(original) / 12));
    }
  });

  it('reaches 36 dB of signal to quantisation noise on a tone', () => {
    const samples = tone({ frequenciesHz: [1004], durationMs: 500, levelDbfs: -10 });
    for (const codec of ['PCMU', 'PCMA'] as const) {
      const octets = new Uint8Array(samples.length);
      const decoded = new Int16Array(samples.length);
      encodeG711(codec, samples, octets);
      decodeG711(codec, octets, decoded);
      let signal = 0;
      let noise = 0;
      samples.forEach((value, index) => {
        signal += value * value;
        noise += (value - decoded[index]!) ** 2;
      });
      expect(10 * Math.log10(signal / noise)).toBeGreaterThan(36);
    }
  });

  it('fills the shorter of two buffers and returns the count', () => {
    expect(encodeG711('PCMU', new Int16Array(10), new Uint8Array(4))).toBe(4);
    expect(decodeG711('PCMA', new Uint8Array(3), new Int16Array(10))).toBe(3);
    expect(transcodingTable('PCMA', 'PCMA')).toBeNull();
    expect(transcodingTable('PCMA', 'PCMU')).toBe(ALAW_TO_MULAW);
  });
});
