import { networkInterfaces } from 'node:os';
import ipaddr from 'ipaddr.js';

/**
 * An IP address and UDP port as numbers, to compare and copy packet sources without strings. IPv4 is stored as
 * IPv4-mapped IPv6 (RFC 4291 §2.5.5.2). All fields are small integers, so writing them allocates nothing.
 */

const MAPPED = 0xffff;

export class Endpoint {
  /** The address in network order, 32 bits each, signed. */
  word0 = 0;
  word1 = 0;
  word2 = 0;
  word3 = 0;
  /** Zone of a link-local IPv6 address, else 0. */
  scopeId = 0;
  /** 0 if not set. */
  port = 0;

  /** @throws RangeError unless `host` is a literal address. */
  static of(host: string, port: number): Endpoint {
    const endpoint = new Endpoint();
    endpoint.setHost(host);
    endpoint.port = port;
    return endpoint;
  }

  /** Whether no address is set. No peer sends from the all-zero address. */
  get isUnspecified(): boolean {
    return (this.word0 | this.word1 | this.word2 | this.word3) === 0;
  }

  get isIPv4(): boolean {
    return this.word2 === MAPPED && this.word1 === 0 && this.word0 === 0;
  }

  copy(from: Endpoint): void {
    this.copyHost(from);
    this.port = from.port;
  }

  copyHost(from: Endpoint): void {
    this.word0 = from.word0;
    this.word1 = from.word1;
    this.word2 = from.word2;
    this.word3 = from.word3;
    this.scopeId = from.scopeId;
  }

  clear(): void {
    this.setWords(0, 0, 0, 0, 0);
    this.port = 0;
  }

  setIPv4(address: number): void {
    this.setWords(0, 0, MAPPED, address, 0);
  }

  setWords(word0: number, word1: number, word2: number, word3: number, scopeId: number): void {
    this.word0 = word0 | 0;
    this.word1 = word1 | 0;
    this.word2 = word2 | 0;
    this.word3 = word3 | 0;
    this.scopeId = scopeId | 0;
  }

  equals(other: Endpoint): boolean {
    return this.port === other.port && this.isSameHost(other);
  }

  isSameHost(other: Endpoint): boolean {
    return (
      this.word3 === other.word3 &&
      this.word2 === other.word2 &&
      this.word1 === other.word1 &&
      this.word0 === other.word0 &&
      this.scopeId === other.scopeId
    );
  }

  /** Sets a literal address, such as `192.0.2.1` or `fe80::1%eth0`. @throws RangeError for any other text. */
  setHost(host: string): void {
    const [address = '', zone] = host.split('%', 2);
    if (!ipaddr.isValid(address)) throw new RangeError('not a literal IP address');
    const parsed = ipaddr.parse(address);
    const mapped = parsed instanceof ipaddr.IPv4 ? parsed.toIPv4MappedAddress() : parsed;
    const bytes = Buffer.from(mapped.toByteArray());
    this.setWords(
      bytes.readInt32BE(0),
      bytes.readInt32BE(4),
      bytes.readInt32BE(8),
      bytes.readInt32BE(12),
      zone === undefined ? 0 : scopeIdOf(zone),
    );
  }

  /** The literal address for a socket of this family. */
  hostFor(family: 4 | 6): string {
    const bytes = Buffer.alloc(16);
    bytes.writeInt32BE(this.word0, 0);
    bytes.writeInt32BE(this.word1, 4);
    bytes.writeInt32BE(this.word2, 8);
    bytes.writeInt32BE(this.word3, 12);
    const address = ipaddr.fromByteArray([...bytes]) as ipaddr.IPv6;
    if (this.isIPv4) return `${family === 6 ? '::ffff:' : ''}${address.toIPv4Address().toString()}`;
    const zone = this.scopeId === 0 ? null : zoneOf(this.scopeId);
    return zone === null ? address.toString() : `${address.toString()}%${zone}`;
  }
}

function scopeIdOf(zone: string): number {
  if (/^\d+$/.test(zone)) return Number(zone);
  return networkInterfaces()[zone]?.find(({ family }) => family === 'IPv6')?.scopeid ?? 0;
}

function zoneOf(scopeId: number): string | null {
  const entry = Object.entries(networkInterfaces()).find(([, addresses]) =>
    addresses?.some((address) => address.family === 'IPv6' && address.scopeid === scopeId),
  );
  return entry?.[0] ?? null;
}
