import { encodeG711, type G711Codec } from '../../../media/codecs/g711.ts';
import { openMp3Encoder } from './mp3-encoder.ts';
import { openOggOpusEncoder } from './ogg-opus-encoder.ts';
import type { OpenSpeechEncoder, SpeechEncoder } from './speech-encoder.ts';

/**
 * Opens an encoder. The same samples give the same bytes, however they are cut into blocks. MP3 and Ogg Opus produce
 * their first bytes within a tenth of a second of speech.
 * @throws RangeError if the codec has no rate as high as the format's
 */
export const openSpeechEncoder: OpenSpeechEncoder = async ({ encoding, sampleRateHz }) => {
  switch (encoding) {
    case 'LINEAR16':
      return sampleEncoder(sampleRateHz, (samples) => new Uint8Array(samples.slice().buffer));
    case 'MULAW':
      return sampleEncoder(sampleRateHz, (samples) => companded('PCMU', samples));
    case 'ALAW':
      return sampleEncoder(sampleRateHz, (samples) => companded('PCMA', samples));
    case 'MP3':
      return await openMp3Encoder(sampleRateHz);
    case 'OGG_OPUS':
      return await openOggOpusEncoder(sampleRateHz);
  }
};

/** For formats without header or state. */
function sampleEncoder(inputRateHz: number, encode: (samples: Int16Array) => Uint8Array<ArrayBuffer>): SpeechEncoder {
  return { inputRateHz, encode, finish: () => new Uint8Array(0), close: () => {} };
}

function companded(codec: G711Codec, samples: Int16Array): Uint8Array<ArrayBuffer> {
  const octets = new Uint8Array(samples.length);
  encodeG711(codec, samples, octets);
  return octets;
}
