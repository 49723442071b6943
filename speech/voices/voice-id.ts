import { createHash } from 'node:crypto';

/** The same for the same name, wherever it is made (RFC 9562 §5.8: a UUID of version 8 is ours to make). */
export function voiceId(name: string): string {
  const bytes = createHash('sha256').update(`tandem:voice:${name}`).digest().subarray(0, 16);
  bytes[6] = (bytes[6]! & 0x0f) | 0x80;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}
