import { isIPv6 } from 'node:net';

/** What one subscriber usually has: an IPv4 address, or a whole IPv6 /64. */
export function networkOf(address: string): string {
  return isIPv6(address) && !address.includes('.') ? expandIpv6(address).slice(0, 4).join(':') : address;
}

function expandIpv6(address: string): string[] {
  const [head = '', tail] = address.split('%', 1)[0]!.split('::');
  const first = head === '' ? [] : head.split(':');
  if (tail === undefined) return first;
  const last = tail === '' ? [] : tail.split(':');
  return [...first, ...Array.from({ length: 8 - first.length - last.length }, () => '0'), ...last];
}
