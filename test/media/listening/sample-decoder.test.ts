import { describe, expect, it } from 'vitest';
import type { AudioFormat } from '../../../machines/utterances.ts';
import { ALAW_TO_LINEAR, MULAW_TO_LINEAR } from '../../../media/codecs/g711.ts';
import { SampleDecoder } from '../../../media/listening/sample-decoder.ts';
import * as fc from '../../properties.ts';

function decode(format: AudioFormat, channels: 'mixed' | 'separate', pieces: Uint8Array[]): number[][] {
  const decoder = new SampleDecoder(format, channels);
  const outputs = [new Float32Array(500), new Float32Array(500)];
  const decoded: number[][] = [[], []];
  for (const piece of pieces) {
    const samples = decoder.decode(piece, outputs);
    for (const [index, output] of outputs.entries()) decoded[index]!.push(...output.subarray(0, samples));
  }
  return decoded;
}

const format = (encoding: AudioFormat['encoding'], channels: 1 | 2 = 1): AudioFormat => ({
  encoding,
  channels,
  sampleRateHz: 8000,
});

describe('sample decoder', () => {
  it('decodes each encoding', () => {
    const octets = Uint8Array.from({ length: 256 }, (_, octet) => octet);
    expect(decode(format('mulaw'), 'mixed', [octets])[0]).toEqual([...MULAW_TO_LINEAR]);
    expect(decode(format('alaw'), 'mixed', [octets])[0]).toEqual([...ALAW_TO_LINEAR]);
    const linear = [0, 1, -1, 32_767, -32_768, 258];
    expect(decode(format('linear16'), 'mixed', [new Uint8Array(Int16Array.from(linear).buffer)])[0]).toEqual(linear);
  });

  it('mixes two channels to their mean, or keeps them separate', () => {
    const stereo = new Uint8Array(Int16Array.from([100, 300, -32_768, -32_768, 7, -7]).buffer);
    expect(decode(format('linear16', 2), 'mixed', [stereo])[0]).toEqual([200, -32_768, 0]);
    expect(decode(format('linear16', 2), 'separate', [stereo])).toEqual([
      [100, -32_768, 7],
      [300, -32_768, -7],
    ]);
    const companded = decode(format('mulaw', 2), 'separate', [Uint8Array.of(0, 128, 255, 1)]);
    expect(companded.map((channel) => channel.length)).toEqual([2, 2]);
  });

  it('gives the same samples for any block sizes and holds back incomplete samples', () => {
    const formats = fc.record({
      encoding: fc.constantFrom('linear16' as const, 'mulaw' as const, 'alaw' as const),
      channels: fc.constantFrom(1 as const, 2 as const),
      sampleRateHz: fc.constant(8000),
    });
    const pieces = fc.array(fc.uint8Array({ maxLength: 30 }), { maxLength: 12 });
    fc.assert(
      fc.property(formats, fc.constantFrom('mixed' as const, 'separate' as const), pieces, (audio, channels, cut) => {
        const whole = new Uint8Array(cut.flatMap((piece) => [...piece]));
        expect(decode(audio, channels, cut)).toEqual(decode(audio, channels, [whole]));
      }),
    );
  });

  it('reports how many bytes fit', () => {
    for (const encoding of ['linear16', 'mulaw'] as const) {
      for (const channels of [1, 2] as const) {
        const decoder = new SampleDecoder(format(encoding, channels), 'mixed');
        const output = [new Float32Array(10)];
        decoder.decode(new Uint8Array(encoding === 'mulaw' ? channels - 1 : 2 * channels - 1), output);
        expect(decoder.decode(new Uint8Array(decoder.bytesFor(10)), output)).toBe(10);
      }
    }
  });
});
