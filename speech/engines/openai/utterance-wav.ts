import { endianness } from 'node:os';
import { RECOGNITION_RATE_HZ } from '../../../machines/utterances.ts';

const HEADER_BYTES = 44;
const SAMPLE_BYTES = Int16Array.BYTES_PER_ELEMENT;

/** Encodes samples as a WAV file of 16-bit PCM (RIFF, "Multimedia Programming Interface" 1991). */
export function encodeWav(blocks: readonly Int16Array[]): Buffer<ArrayBuffer> {
  const dataBytes = blocks.reduce((sum, block) => sum + block.byteLength, 0);
  const file = Buffer.alloc(HEADER_BYTES + dataBytes);
  file.write('RIFF', 0, 'latin1');
  file.writeUInt32LE(HEADER_BYTES - 8 + dataBytes, 4);
  file.write('WAVEfmt ', 8, 'latin1');
  file.writeUInt32LE(16, 16);
  file.writeUInt16LE(1, 20);
  file.writeUInt16LE(1, 22);
  file.writeUInt32LE(RECOGNITION_RATE_HZ, 24);
  file.writeUInt32LE(RECOGNITION_RATE_HZ * SAMPLE_BYTES, 28);
  file.writeUInt16LE(SAMPLE_BYTES, 32);
  file.writeUInt16LE(8 * SAMPLE_BYTES, 34);
  file.write('data', 36, 'latin1');
  file.writeUInt32LE(dataBytes, 40);
  let offset = HEADER_BYTES;
  for (const block of blocks) {
    file.set(new Uint8Array(block.buffer, block.byteOffset, block.byteLength), offset);
    offset += block.byteLength;
  }
  if (endianness() === 'BE') file.subarray(HEADER_BYTES).swap16();
  return file;
}
