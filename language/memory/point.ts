/** Quantizes an embedding to one signed byte per dimension, the largest value at 127. Only directions are compared. */
export function pointOf(embedding: Float32Array): Uint8Array {
  let longest = 0;
  for (const value of embedding) longest = Math.max(longest, Math.abs(value));
  const bytes = new Int8Array(embedding.length);
  if (longest > 0) for (let at = 0; at < bytes.length; at++) bytes[at] = Math.round((embedding[at]! * 127) / longest);
  return new Uint8Array(bytes.buffer);
}

/** Vector length; 0 if it has no direction. */
export function lengthOf(point: Uint8Array): number {
  let squares = 0;
  for (const byte of new Int8Array(point.buffer, point.byteOffset, point.length)) squares += byte * byte;
  return Math.sqrt(squares);
}
