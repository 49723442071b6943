import { OpusDecoder, OpusEncoder } from '../media/codecs/opus.ts';
import { openLibopus } from './c-codecs.ts';
import { type CodecContender, compareCodecs, FRAME_SAMPLES } from './codec-contest.ts';

/**
 * CPU time of encoding and decoding 20 ms of Opus as in a call. The reference is Debian's libopus0, in C through koffi,
 * in the same run with the same frames and settings.
 */

const heard = new Int16Array(6 * FRAME_SAMPLES);
const reference = await openLibopus();
if (reference === null) console.log('libopus0 (Debian) is not installed; no reference.');
compareCodecs({ tandem: await openTandem(), ...(reference !== null && { libopus0: reference }) });

async function openTandem(): Promise<CodecContender> {
  const [encoder, decoder] = await Promise.all([OpusEncoder.open(), OpusDecoder.open()]);
  return { encode: (samples) => encoder.encode(samples), decode: (packet) => void decoder.decode(packet, heard) };
}
