import { OpusDecoder, OpusEncoder } from '../media/codecs/opus.ts';
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

/** Null where the library is missing. */
async function openLibopus(): Promise<CodecContender | null> {
  try {
    const { default: koffi } = await import('koffi');
    const library = koffi.load('libopus.so.0');
    const encoder = library.func('void *opus_encoder_create(int, int, int, void *)')(16_000, 1, 2048, null);
    const decoder = library.func('void *opus_decoder_create(int, int, void *)')(16_000, 1, null);
    const control = library.func('int opus_encoder_ctl(void *encoder, int request, ...)');
    // Bit rate, complexity, in-band FEC, expected loss and signal, as `media/codecs/opus.ts` sets them.
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
