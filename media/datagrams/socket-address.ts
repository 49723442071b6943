import { isIPv6 } from 'node:net';
import { Endpoint } from './endpoint.ts';
import type { SystemCalls } from './system-calls.ts';

/** `struct sockaddr_in` and `sockaddr_in6` of a little-endian machine, as 32-bit words. */

export const IPV4_BYTES = 16;
export const IPV6_BYTES = 28;
const AF_INET = 2;
const AF_INET6 = 10;

export function socketAddressBytes(family: 4 | 6): number {
  return family === 6 ? IPV6_BYTES : IPV4_BYTES;
}

/** Opens a UDP socket bound to a literal address. Returns it with its port. @throws the system's error */
export function bindSocket(calls: SystemCalls, host: string, port: number): { descriptor: number; port: number } {
  const family = isIPv6(host) ? 6 : 4;
  const descriptor = calls.socket(family);
  try {
    const words = new Int32Array(IPV6_BYTES / 4);
    const address = new Uint8Array(words.buffer, 0, socketAddressBytes(family));
    writeSocketAddress(words, 0, family, Endpoint.of(host, port));
    calls.bind(descriptor, address);
    calls.nameOf(descriptor, address);
    const bound = new Endpoint();
    readSocketAddress(words, 0, bound);
    return { descriptor, port: bound.port };
  } catch (error) {
    calls.close(descriptor);
    throw error;
  }
}

/** Writes the address to word `at`. An IPv4 socket uses only the last word of the address. Allocates nothing. */
export function writeSocketAddress(words: Int32Array, at: number, family: 4 | 6, endpoint: Endpoint): void {
  if (family === 4) {
    writeIPv4Address(words, at, endpoint);
    words[at + 2] = 0;
    words[at + 3] = 0;
    return;
  }
  words[at] = AF_INET6 | portInNetworkOrder(endpoint);
  words[at + 1] = 0;
  words[at + 2] = inNetworkOrder(endpoint.word0);
  words[at + 3] = inNetworkOrder(endpoint.word1);
  words[at + 4] = inNetworkOrder(endpoint.word2);
  words[at + 5] = inNetworkOrder(endpoint.word3);
  words[at + 6] = endpoint.scopeId;
}

/** Writes family, port and address, without the unused half of a `sockaddr_in`. */
export function writeIPv4Address(words: Int32Array, at: number, endpoint: Endpoint): void {
  words[at] = AF_INET | portInNetworkOrder(endpoint);
  words[at + 1] = inNetworkOrder(endpoint.word3);
}

/** Reads the kernel's address at word `at`. Allocates nothing. */
export function readSocketAddress(words: Int32Array, at: number, endpoint: Endpoint): void {
  const first = words[at]!;
  endpoint.port = ((first >>> 24) & 0xff) | ((first >>> 8) & 0xff00);
  if ((first & 0xffff) === AF_INET) {
    endpoint.setIPv4(inNetworkOrder(words[at + 1]!));
    return;
  }
  endpoint.setWords(
    inNetworkOrder(words[at + 2]!),
    inNetworkOrder(words[at + 3]!),
    inNetworkOrder(words[at + 4]!),
    inNetworkOrder(words[at + 5]!),
    words[at + 6]!,
  );
}

function portInNetworkOrder({ port }: Endpoint): number {
  return ((port & 0xff) << 24) | ((port & 0xff00) << 8);
}

/** Swaps the bytes of a 32-bit word, which works in both directions. The result is signed. */
export function inNetworkOrder(word: number): number {
  return (word << 24) | ((word & 0xff00) << 8) | ((word >>> 8) & 0xff00) | (word >>> 24);
}
