import { createHash } from 'node:crypto';
import type { WordMark } from '../synthesizer.ts';

/** A complete clause as an engine spoke it. */
export interface FinishedClause {
  sampleRateHz: number;
  samples: Int16Array<ArrayBuffer>;
  marks: readonly WordMark[];
}

/**
 * File format of a clause: a magic number, the SHA-256 of its key and the rest, sample rate and number of marks as
 * 32-bit words, the marks as pairs of doubles, and 16-bit samples; little-endian throughout.
 */
const MAGIC = Buffer.from('TSPEECH1', 'latin1');
const DIGEST_BYTES = 32;
const HEAD_BYTES = MAGIC.length + DIGEST_BYTES + 8;
const MARK_BYTES = 16;

export function encodeClause(key: string, { sampleRateHz, samples, marks }: FinishedClause): Buffer {
  const samplesStart = HEAD_BYTES + marks.length * MARK_BYTES;
  const bytes = Buffer.alloc(samplesStart + samples.length * 2);
  MAGIC.copy(bytes);
  bytes.writeUInt32LE(sampleRateHz, HEAD_BYTES - 8);
  bytes.writeUInt32LE(marks.length, HEAD_BYTES - 4);
  for (const [index, { word, atMs }] of marks.entries()) {
    bytes.writeDoubleLE(word, HEAD_BYTES + index * MARK_BYTES);
    bytes.writeDoubleLE(atMs, HEAD_BYTES + index * MARK_BYTES + 8);
  }
  for (let index = 0; index < samples.length; index++) bytes.writeInt16LE(samples[index]!, samplesStart + index * 2);
  digestOf(key, bytes).copy(bytes, MAGIC.length);
  return bytes;
}

/** Null if the file is incomplete, damaged or of another clause. */
export function decodeClause(key: string, bytes: Buffer): FinishedClause | null {
  if (bytes.length < HEAD_BYTES || !bytes.subarray(0, MAGIC.length).equals(MAGIC)) return null;
  if (!digestOf(key, bytes).equals(bytes.subarray(MAGIC.length, MAGIC.length + DIGEST_BYTES))) return null;
  const sampleRateHz = bytes.readUInt32LE(HEAD_BYTES - 8);
  const marksCount = bytes.readUInt32LE(HEAD_BYTES - 4);
  const samplesStart = HEAD_BYTES + marksCount * MARK_BYTES;
  if (sampleRateHz < LOWEST_RATE_HZ || sampleRateHz > HIGHEST_RATE_HZ || samplesStart > bytes.length) return null;
  const marks: WordMark[] = [];
  for (let at = HEAD_BYTES; at < samplesStart; at += MARK_BYTES) {
    marks.push({ word: bytes.readDoubleLE(at), atMs: bytes.readDoubleLE(at + 8) });
  }
  const samples = new Int16Array((bytes.length - samplesStart) >> 1);
  for (let index = 0; index < samples.length; index++) samples[index] = bytes.readInt16LE(samplesStart + index * 2);
  return { sampleRateHz, samples, marks };
}

const [LOWEST_RATE_HZ, HIGHEST_RATE_HZ] = [4000, 192_000];

/** Includes the key, so that a renamed file is not mistaken for another clause. */
function digestOf(key: string, bytes: Buffer): Buffer {
  return createHash('sha256')
    .update(key)
    .update(bytes.subarray(MAGIC.length + DIGEST_BYTES))
    .digest();
}
