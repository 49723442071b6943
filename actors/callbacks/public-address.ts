import type { IPv4, IPv6 } from 'ipaddr.js';
import ipaddr from 'ipaddr.js';

/** A network allowed by the operator, parsed at start-up by `parseCidrs`. */
export type Cidr = readonly [network: IPv4 | IPv6, prefixBits: number];

/**
 * `allowed`: in the operator's list, so plain http is fine too. `public`: global unicast, https only. `refused`:
 * everything else, including unparsable text.
 */
export type AddressClass = 'allowed' | 'public' | 'refused';

export function classifyAddress(address: string, allowCidrs: readonly Cidr[]): AddressClass {
  const parsed = parseAddress(address);
  if (parsed === null) return 'refused';
  if (allowCidrs.some((cidr) => inCidr(parsed, cidr))) return 'allowed';
  return isPublic(parsed) ? 'public' : 'refused';
}

/**
 * Whether an address is link-local, multicast, unspecified or a cloud metadata service. No setting allows these for
 * trunks. True for unparsable text.
 */
export function isLinkLocalOrMetadata(address: string): boolean {
  const parsed = parseAddress(address);
  if (parsed === null || NEVER_A_PEER.has(parsed.range())) return true;
  return METADATA.some((cidr) => inCidr(parsed, cidr));
}

const NEVER_A_PEER: ReadonlySet<string> = new Set(['linkLocal', 'multicast', 'broadcast', 'unspecified']);

/**
 * Parses the entries of `CALLBACK_ALLOW_CIDRS`: `127.0.0.0/8`, `::1/128`, or a bare address.
 * @throws RangeError naming the first invalid entry
 */
export function parseCidrs(entries: readonly string[]): Cidr[] {
  return entries.map((entry) => {
    const text = entry.trim();
    if (!text.includes('/')) {
      const address = parseAddress(text);
      if (address === null) throw new RangeError(`Not an IP address or CIDR range: ${entry}`);
      return [address, address.kind() === 'ipv4' ? 32 : 128] as const;
    }
    if (!ipaddr.IPv4.isValidCIDRFourPartDecimal(text) && !ipaddr.IPv6.isValidCIDR(text)) {
      throw new RangeError(`Not an IP address or CIDR range: ${entry}`);
    }
    const [network, prefixBits] = ipaddr.parseCIDR(text);
    if (network.kind() === 'ipv6' && (network as IPv6).isIPv4MappedAddress() && prefixBits >= 96) {
      return [(network as IPv6).toIPv4Address(), prefixBits - 96] as const;
    }
    return [network, prefixBits] as const;
  });
}

/**
 * Converts IPv4-mapped IPv6 (::ffff:a.b.c.d) to the IPv4 address it reaches. Accepts IPv4 only as four decimal parts:
 * URLs are already normalised from octal and hex, and resolvers never return those.
 */
function parseAddress(address: string): IPv4 | IPv6 | null {
  if (!ipaddr.IPv4.isValidFourPartDecimal(address) && !ipaddr.IPv6.isValid(address)) return null;
  return ipaddr.process(address);
}

function inCidr(address: IPv4 | IPv6, [network, prefixBits]: Cidr): boolean {
  return address.kind() === network.kind() && address.match(network as IPv4 & IPv6, prefixBits);
}

/**
 * Whether an address is global unicast. ipaddr.js names every range of the IANA special-purpose registries (RFC 6890),
 * so `unicast` is the rest. For IPv6 the rest includes unassigned space and ::/96 with embedded IPv4, so also test for
 * 2000::/3, the only block that IANA assigns. NAT64, 6to4 and Teredo are always refused: a gateway would lead to an
 * unchecked IPv4 address.
 */
function isPublic(address: IPv4 | IPv6): boolean {
  if (address.range() !== 'unicast') return false;
  if (address.kind() === 'ipv4') return true;
  const ipv6 = address as IPv6;
  return ipv6.match(GLOBAL_UNICAST, 3) && !ipv6.zoneId && !isIsatap(ipv6);
}

/** Besides 169.254.169.254: AWS over IPv6, Azure, Alibaba Cloud and Oracle Cloud. */
const METADATA = parseCidrs(['fd00:ec2::/32', '168.63.129.16', '100.100.100.200', '192.0.0.192']);

const GLOBAL_UNICAST = ipaddr.IPv6.parse('2000::');

/** RFC 5214 §6.1: interface identifiers ::5efe:a.b.c.d and ::200:5efe:a.b.c.d tunnel to the IPv4 address in them. */
function isIsatap(address: IPv6): boolean {
  return (address.parts[4] === 0 || address.parts[4] === 0x200) && address.parts[5] === 0x5efe;
}
