import { RTP_HEADER_BYTES, readUint16, readUint32 } from '../rtp/packet.ts';

/** Parses the unencrypted parts of a packet, which may be hostile. */

const RTCP_HEADER_BYTES = 8;

/** Offset of the payload in `packet[0, bytes)`, after CSRCs and header extension; -1 if it is not RTP. */
export function rtpHeaderBytes(packet: Uint8Array, bytes: number): number {
  if (bytes < RTP_HEADER_BYTES) return -1;
  const first = packet[0]!;
  if (first >> 6 !== 2) return -1;
  let headerBytes = RTP_HEADER_BYTES + (first & 0x0f) * 4;
  if ((first & 0x10) !== 0) {
    if (headerBytes + 4 > bytes) return -1;
    headerBytes += 4 + readUint16(packet, headerBytes + 2) * 4;
  }
  return headerBytes > bytes ? -1 : headerBytes;
}

/** Sender SSRC of the RTCP packet `packet[0, bytes)`; -1 if it is not RTCP. */
export function rtcpSsrcOf(packet: Uint8Array, bytes: number): number {
  if (bytes < RTCP_HEADER_BYTES || packet[0]! >> 6 !== 2) return -1;
  return readUint32(packet, 4);
}
