export const COMPANDED_WAV_HEADER_BYTES = 58;

/** WAVE_FORMAT_ALAW and WAVE_FORMAT_MULAW (RFC 2361, A.3 and A.4). */
const FORMAT_CODES = { ALAW: 6, MULAW: 7 };

/**
 * Header of a mono G.711 WAV file, 8 bits a sample. Unlike PCM it has an extension, here empty, and a fact chunk with
 * the sample count (Multimedia Data Standards Update, 1994). Pad an odd number of `dataBytes` with one byte.
 */
export function compandedWavHeader(
  { law, sampleRateHz }: { law: keyof typeof FORMAT_CODES; sampleRateHz: number },
  dataBytes: number,
): Buffer {
  const header = Buffer.alloc(COMPANDED_WAV_HEADER_BYTES);
  header.write('RIFF', 0, 'latin1');
  header.writeUInt32LE(COMPANDED_WAV_HEADER_BYTES - 8 + dataBytes + (dataBytes & 1), 4);
  header.write('WAVEfmt ', 8, 'latin1');
  header.writeUInt32LE(18, 16);
  header.writeUInt16LE(FORMAT_CODES[law], 20);
  header.writeUInt16LE(1, 22);
  header.writeUInt32LE(sampleRateHz, 24);
  header.writeUInt32LE(sampleRateHz, 28);
  header.writeUInt16LE(1, 32);
  header.writeUInt16LE(8, 34);
  header.writeUInt16LE(0, 36);
  header.write('fact', 38, 'latin1');
  header.writeUInt32LE(4, 42);
  header.writeUInt32LE(dataBytes, 46);
  header.write('data', 50, 'latin1');
  header.writeUInt32LE(dataBytes, 54);
  return header;
}
