/**
 * Encrypts and authenticates single packets in place, with the keys of one direction. Stateless: the caller owns the
 * indexes and must never seal two packets with the same SSRC and index.
 */
export interface PacketCipher {
  /** Seals `packet[0, bytes)`, leaving the first `headerBytes` readable, and writes the tag after it. */
  sealRtp(packet: Buffer, headerBytes: number, bytes: number, ssrc: number, roc: number, sequence: number): void;
  /** Opens `packet[0, bytes)` with the tag after it. If false, the packet is unchanged. */
  openRtp(packet: Buffer, headerBytes: number, bytes: number, ssrc: number, roc: number, sequence: number): boolean;
  /** Seals `packet[0, bytes)` and writes tag and index after it. */
  sealRtcp(packet: Buffer, bytes: number, ssrc: number, index: number): void;
  /** Opens `packet[0, bytes)` with tag and index after it. If false, the packet is unchanged. */
  openRtcp(packet: Buffer, bytes: number, ssrc: number, index: number): boolean;
  /** Reads the word of E flag and index from a packet of `bytes` in total. */
  indexWordOf(packet: Buffer, bytes: number): number;
}
