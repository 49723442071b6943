import { type CodecContender, FRAME_SAMPLES } from './codec-contest.ts';

/** Codecs in C, called through koffi, as references. */

/** 120 ms. */
const heard = new Int16Array(6 * FRAME_SAMPLES);

/** Opens Debian's libopus0 with the settings of `media/codecs/opus.ts`; null if it is missing. */
export async function openLibopus(): Promise<CodecContender | null> {
  try {
    const { default: koffi } = await import('koffi');
    const library = koffi.load('libopus.so.0');
    const encoder = library.func('void *opus_encoder_create(int, int, int, void *)')(16_000, 1, 2048, null);
    const decoder = library.func('void *opus_decoder_create(int, int, void *)')(16_000, 1, null);
    const control = library.func('int opus_encoder_ctl(void *encoder, int request, ...)');
    // Bit rate, complexity, in-band FEC, expected loss and signal.
    control(encoder, 4002, 'int', 24_000);
    control(encoder, 4010, 'int', 3);
    control(encoder, 4012, 'int', 1);
    control(encoder, 4014, 'int', 10);
    control(encoder, 4024, 'int', 3001);
    const encode = library.func('int opus_encode(void *, int16_t *, int, uint8_t *, int)');
    const decode = library.func('int opus_decode(void *, uint8_t *, int, int16_t *, int, int)');
    const octets = new Uint8Array(1275);
    return {
      encode: (samples) => octets.subarray(0, encode(encoder, samples, FRAME_SAMPLES, octets, octets.length)),
      decode: (packet) => void decode(decoder, packet, packet.length, heard, heard.length, 0),
    };
  } catch {
    return null;
  }
}

/** Opens G.722 of Debian's libspandsp2; null if it is missing. */
export async function openSpandsp(): Promise<CodecContender | null> {
  try {
    const { default: koffi } = await import('koffi');
    const library = koffi.load('libspandsp.so.2');
    const encode = library.func('int g722_encode(void *state, uint8_t *octets, int16_t *samples, int count)');
    const decode = library.func('int g722_decode(void *state, int16_t *samples, uint8_t *octets, int count)');
    const encoding = library.func('void *g722_encode_init(void *, int, int)')(null, 64_000, 0);
    const decoding = library.func('void *g722_decode_init(void *, int, int)')(null, 64_000, 0);
    const octets = new Uint8Array(FRAME_SAMPLES / 2);
    return {
      encode(samples) {
        encode(encoding, octets, samples, samples.length);
        return octets;
      },
      decode: (packet) => void decode(decoding, heard, packet, packet.length),
    };
  } catch {
    return null;
  }
}
