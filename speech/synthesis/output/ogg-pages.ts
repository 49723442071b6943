/**
 * Writes the packets of one logical bitstream into Ogg pages (RFC 3533 §6). Write a page only when the next packet
 * arrives or the stream ends, because its header says whether it is the last.
 */
export class OggPages {
  readonly #serial: number;
  #sequence = 0;
  #packets: Uint8Array[] = [];
  #granulePosition = 0;
  /** Entries of the segment table. */
  #segments = 0;

  /** @param serial distinguishes consecutive streams in a file; 32 bits */
  constructor(serial: number) {
    this.#serial = serial;
  }

  /** Number of packets since the last page. */
  get packets(): number {
    return this.#packets.length;
  }

  /**
   * Adds a packet; `granulePosition` is the position after it. A page has room for 50 packets of at most 1,275 bytes.
   * @throws RangeError if the page is full
   */
  add(packet: Uint8Array, granulePosition: number): void {
    this.#segments += Math.floor(packet.length / LARGEST_SEGMENT) + 1;
    if (this.#segments > MOST_SEGMENTS) throw new RangeError('more than a page holds');
    this.#packets.push(packet);
    this.#granulePosition = granulePosition;
  }

  /** Builds a page of the packets since the last one. Set `granulePosition` to play less than the packets contain. */
  page({ last = false, granulePosition = this.#granulePosition } = {}): Uint8Array<ArrayBuffer> {
    const bodyBytes = this.#packets.reduce((sum, packet) => sum + packet.length, 0);
    const headerBytes = HEADER_BYTES + this.#segments;
    const page = new Uint8Array(headerBytes + bodyBytes);
    const view = new DataView(page.buffer);
    page.set(CAPTURE_PATTERN);
    view.setUint8(5, (this.#sequence === 0 ? BEGINNING_OF_STREAM : 0) | (last ? END_OF_STREAM : 0));
    view.setBigUint64(6, BigInt(granulePosition), true);
    view.setUint32(14, this.#serial, true);
    view.setUint32(18, this.#sequence, true);
    view.setUint8(26, this.#segments);
    let entry = HEADER_BYTES;
    let body = headerBytes;
    for (const packet of this.#packets) {
      const full = Math.floor(packet.length / LARGEST_SEGMENT);
      page.fill(LARGEST_SEGMENT, entry, entry + full);
      page[entry + full] = packet.length % LARGEST_SEGMENT;
      entry += full + 1;
      page.set(packet, body);
      body += packet.length;
    }
    view.setUint32(22, oggChecksum(page), true);
    this.#sequence += 1;
    this.#packets = [];
    this.#segments = 0;
    return page;
  }
}

const CAPTURE_PATTERN = Uint8Array.from('OggS', (letter) => letter.charCodeAt(0));
const HEADER_BYTES = 27;
const LARGEST_SEGMENT = 255;
const MOST_SEGMENTS = 255;
const BEGINNING_OF_STREAM = 0x02;
const END_OF_STREAM = 0x04;

const CHECKSUM_POLYNOMIAL = 0x04c11db7;
const CHECKSUM_TABLE = Uint32Array.from({ length: 256 }, (_, octet) => {
  let remainder = octet << 24;
  for (let bit = 0; bit < 8; bit++) remainder = (remainder << 1) ^ (remainder < 0 ? CHECKSUM_POLYNOMIAL : 0);
  return remainder;
});

/** Checksum of a page whose own field is zero: CRC-32 from zero, neither reflected nor inverted. */
export function oggChecksum(bytes: Uint8Array): number {
  let remainder = 0;
  for (let i = 0; i < bytes.length; i++) {
    remainder = (remainder << 8) ^ CHECKSUM_TABLE[(remainder >>> 24) ^ bytes[i]!]!;
  }
  return remainder >>> 0;
}
