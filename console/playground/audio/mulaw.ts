const BIAS = 0x84;
const CLIP = 32_635;

/** Encodes 16-bit samples as G.711 mu-law (ITU-T G.711, table 2a). */
export function mulawOf(samples: Int16Array): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(samples, (sample) => {
    const sign = sample < 0 ? 0x80 : 0;
    const magnitude = Math.min(Math.abs(sample), CLIP) + BIAS;
    const exponent = 24 - Math.clz32(magnitude);
    const mantissa = (magnitude >> (exponent + 3)) & 0x0f;
    return ~(sign | (exponent << 4) | mantissa) & 0xff;
  });
}
