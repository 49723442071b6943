import { OpusDecoder, OpusEncoder } from '../media/codecs/opus.ts';
import { openLibopus } from './c-codecs.ts';
import { type CodecContender, compareCodecs, FRAME_SAMPLES } from './codec-contest.ts';

/**
 * CPU to encode and decode 20 ms of Opus as a call has it. The reference is Debian's libopus0, in C, called through koffi in
 * the same run on the same frames, with the same settings.
 */

const heard = new Int16Array(6 * FRAME_SAMPLES);
const reference = await openLibopus();
if (reference === null) console.log('libopus0 (Debian) is not installed; no reference.');
compareCodecs({ tandem: await openTandem(), ...(reference !== null && { libopus0: reference }) });

async function openTandem(): Promise<CodecContender> {
  const [encoder, decoder] = await Promise.all([OpusEncoder.open(), OpusDecoder.open()]);
  return { encode: (samples) => encoder.encode(samples), decode: (packet) => void decoder.decode(packet, heard) };
}
