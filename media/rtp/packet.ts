/**
 * RTP fixed header (RFC 3550 §5.1), read and written in place. Only `emptyRtpHeader` and `buildRtpPacket` allocate.
 */

export const RTP_HEADER_BYTES = 12;

/** Header fields of a packet that `parseRtp` accepted. The object may be reused. */
export interface RtpHeader {
  marker: boolean;
  payloadType: number;
  /** 16 bits. */
  sequence: number;
  /** 32 bits, unsigned; for G.711 in samples of 125 us. */
  timestamp: number;
  /** 32 bits, unsigned. */
  ssrc: number;
  /** Byte offset of the payload, after CSRCs and header extension. */
  payloadOffset: number;
  /** Without padding; may be 0. */
  payloadBytes: number;
}

export function emptyRtpHeader(): RtpHeader {
  return { marker: false, payloadType: 0, sequence: 0, timestamp: 0, ssrc: 0, payloadOffset: 0, payloadBytes: 0 };
}

/**
 * Parses a datagram into `header`. False, with `header` unchanged, if it is not RTP version 2, is truncated, has
 * invalid padding, or is RTCP by RFC 5761 §4 (payload types 64-95).
 */
export function parseRtp(datagram: Uint8Array, header: RtpHeader, bytes: number = datagram.length): boolean {
  if (bytes < RTP_HEADER_BYTES) return false;
  const first = datagram[0]!;
  if (first >> 6 !== 2) return false;
  const second = datagram[1]!;
  const payloadType = second & 0x7f;
  if (payloadType >= 64 && payloadType <= 95) return false;
  let payloadOffset = RTP_HEADER_BYTES + (first & 0x0f) * 4;
  if ((first & 0x10) !== 0) {
    if (payloadOffset + 4 > bytes) return false;
    payloadOffset += 4 + readUint16(datagram, payloadOffset + 2) * 4;
  }
  let payloadEnd = bytes;
  if ((first & 0x20) !== 0) {
    const paddingBytes = datagram[bytes - 1]!;
    if (paddingBytes === 0) return false;
    payloadEnd -= paddingBytes;
  }
  if (payloadOffset > payloadEnd) return false;
  header.marker = (second & 0x80) !== 0;
  header.payloadType = payloadType;
  header.sequence = readUint16(datagram, 2);
  header.timestamp = readUint32(datagram, 4);
  header.ssrc = readUint32(datagram, 8);
  header.payloadOffset = payloadOffset;
  header.payloadBytes = payloadEnd - payloadOffset;
  return true;
}

interface RtpHeaderFields {
  payloadType: number;
  sequence: number;
  timestamp: number;
  ssrc: number;
  marker?: boolean;
}

/** Writes the 12 byte header (no CSRC, extension or padding) at the start of `target`. Values wrap. */
export function writeRtpHeader(target: Uint8Array, fields: RtpHeaderFields): void {
  target[0] = 0x80;
  target[1] = (fields.marker === true ? 0x80 : 0) | (fields.payloadType & 0x7f);
  writeUint16(target, 2, fields.sequence);
  writeUint32(target, 4, fields.timestamp);
  writeUint32(target, 8, fields.ssrc);
}

/** Builds a packet, for softphones and tests. */
export function buildRtpPacket(fields: RtpHeaderFields, payload: Uint8Array): Buffer {
  const packet = Buffer.allocUnsafe(RTP_HEADER_BYTES + payload.length);
  writeRtpHeader(packet, fields);
  packet.set(payload, RTP_HEADER_BYTES);
  return packet;
}

export function readUint16(bytes: Uint8Array, offset: number): number {
  return (bytes[offset]! << 8) | bytes[offset + 1]!;
}

export function readUint32(bytes: Uint8Array, offset: number): number {
  return ((bytes[offset]! << 24) | (bytes[offset + 1]! << 16) | (bytes[offset + 2]! << 8) | bytes[offset + 3]!) >>> 0;
}

export function writeUint16(bytes: Uint8Array, offset: number, value: number): void {
  bytes[offset] = value >>> 8;
  bytes[offset + 1] = value;
}

export function writeUint32(bytes: Uint8Array, offset: number, value: number): void {
  bytes[offset] = value >>> 24;
  bytes[offset + 1] = value >>> 16;
  bytes[offset + 2] = value >>> 8;
  bytes[offset + 3] = value;
}
