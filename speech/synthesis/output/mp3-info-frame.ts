/**
 * Builds a silent MP3 frame with an Info tag and LAME's extension (Gabriel Bouvigne, "Mp3 Info Tag revision 1
 * Specifications"). At the start of a stream, only the encoder delay is known.
 */
export function infoFrame(options: {
  rateHz: number;
  kilobitsPerSecond: number;
  channels: 1 | 2;
  delaySamples: number;
}): Uint8Array<ArrayBuffer> {
  const { rateHz, kilobitsPerSecond, channels, delaySamples } = options;
  const version = VERSIONS.find(({ ratesHz }) => ratesHz.includes(rateHz));
  const bitRate = version?.kilobitsPerSecond.indexOf(kilobitsPerSecond) ?? -1;
  if (version === undefined || bitRate < 0) throw new RangeError('MP3 has no such frame');
  const frame = Buffer.from(
    new ArrayBuffer(Math.floor((version.samplesPerFrame / 8) * ((kilobitsPerSecond * 1000) / rateHz))),
  );
  frame.writeUInt8(0xff, 0);
  // Layer III without a checksum.
  frame.writeUInt8(0xe0 | (version.bits << 3) | 0b011, 1);
  frame.writeUInt8(((bitRate + 1) << 4) | (version.ratesHz.indexOf(rateHz) << 2), 2);
  frame.writeUInt8(CHANNEL_MODES[channels], 3);
  const tag = 4 + version.sideInformationBytes[channels];
  frame.write('Info', tag, 'latin1');
  // No optional fields, so LAME's part follows directly.
  const lame = tag + 8;
  frame.write('LAME3.100', lame, 'latin1');
  frame.writeUInt8(CONSTANT_BIT_RATE, lame + 9);
  frame.writeUInt8(kilobitsPerSecond, lame + 20);
  frame.writeUIntBE(delaySamples << 12, lame + 21, 3);
  frame.writeUInt16BE(tagChecksum(frame.subarray(0, lame + 34)), lame + 34);
  return new Uint8Array(frame.buffer);
}

/** Single channel, joint stereo. */
const CHANNEL_MODES = { 1: 0b11 << 6, 2: 0b01 << 6 };
const CONSTANT_BIT_RATE = 1;
const LOW_RATE_KILOBITS = [8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160];

/** List indices are those of the frame header (ISO/IEC 11172-3 §2.4.2.3, 13818-3 §2.4.2.3). */
const VERSIONS = [
  {
    bits: 0b11,
    ratesHz: [44100, 48000, 32000],
    kilobitsPerSecond: [32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320],
    samplesPerFrame: 1152,
    sideInformationBytes: { 1: 17, 2: 32 },
  },
  {
    bits: 0b10,
    ratesHz: [22050, 24000, 16000],
    kilobitsPerSecond: LOW_RATE_KILOBITS,
    samplesPerFrame: 576,
    sideInformationBytes: { 1: 9, 2: 17 },
  },
  {
    bits: 0b00,
    ratesHz: [11025, 12000, 8000],
    kilobitsPerSecond: LOW_RATE_KILOBITS,
    samplesPerFrame: 576,
    sideInformationBytes: { 1: 9, 2: 17 },
  },
];

/** CRC-16 with the polynomial 0x8005, reflected, over the preceding bytes. */
function tagChecksum(bytes: Uint8Array): number {
  let remainder = 0;
  for (const octet of bytes) {
    remainder ^= octet;
    for (let bit = 0; bit < 8; bit++) remainder = (remainder >> 1) ^ (remainder & 1 ? 0xa001 : 0);
  }
  return remainder;
}
