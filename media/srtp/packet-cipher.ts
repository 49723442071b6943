/**
 * Encrypts and authenticates single packets in place, with the keys of one direction. Keeps no state between packets:
 * the caller owns the indexes and must never seal two packets with the same SSRC and index.
 */
export interface PacketCipher {
  /** Seals `packet[0, bytes)`, whose first `headerBytes` stay readable, and writes the tag behind it. */
  sealRtp(packet: Buffer, headerBytes: number, bytes: number, ssrc: number, roc: number, sequence: number): void;
  /** Opens `packet[0, bytes)` with the tag behind it. When false, the packet is as it was. */
  openRtp(packet: Buffer, headerBytes: number, bytes: number, ssrc: number, roc: number, sequence: number): boolean;
  /** Seals `packet[0, bytes)` and writes tag and index behind it. */
  sealRtcp(packet: Buffer, bytes: number, ssrc: number, index: number): void;
  /** Opens `packet[0, bytes)` with tag and index behind it. When false, the packet is as it was. */
  openRtcp(packet: Buffer, bytes: number, ssrc: number, index: number): boolean;
  /** Reads the word of E flag and index from a packet of `bytes` in all. */
  indexWordOf(packet: Buffer, bytes: number): number;
}
