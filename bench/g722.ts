import { G722Decoder, G722Encoder } from '../media/codecs/g722.ts';
import { openSpandsp } from './c-codecs.ts';
import { type CodecContender, compareCodecs, FRAME_SAMPLES } from './codec-contest.ts';

/**
 * CPU time of encoding and decoding 20 ms of G.722. The reference is Debian's libspandsp2, in C through koffi, in the
 * same run on the same frames.
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
