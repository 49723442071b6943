import { G722Decoder, G722Encoder } from '../media/codecs/g722.ts';
import { type CodecContender, compareCodecs, FRAME_SAMPLES } from './codec-contest.ts';

/**
 * CPU to encode and decode 20 ms of G.722. The reference is Debian's libspandsp2, in C, called through koffi in the same
 * run on the same frames.
 */

const heard = new Int16Array(FRAME_SAMPLES);
const reference = await openSpandsp();
if (reference === null) console.log('libspandsp2 (Debian) is not installed; no reference.');
compareCodecs({ tandem: openTandem(), ...(reference !== null && { libspandsp2: reference }) });

function openTandem(): CodecContender {
  const encoder = new G722Encoder();
  const decoder = new G722Decoder();
  const octets = new Uint8Array(FRAME_SAMPLES / 2);
  return {
    encode(samples) {
      encoder.encode(samples, octets);
      return octets;
    },
    decode: (packet) => void decoder.decode(packet, heard),
  };
}

/** Null where the library is missing. */
async function openSpandsp(): Promise<CodecContender | null> {
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
