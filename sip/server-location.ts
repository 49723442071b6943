import type { NaptrRecord, SrvRecord } from 'node:dns';
import { orderByWeight } from '../runtime/weighted-order.ts';
import { SipError } from './sip-error.ts';
import type { NextHop, SipTransport } from './sip-gateway.ts';
import { readTrunkUri } from './trunk.ts';

/**
 * DNS queries. Each returns an empty list if the name has no such records, and rejects if the server does not respond.
 */
export interface SipDns {
  naptr(name: string, signal?: AbortSignal): Promise<readonly NaptrRecord[]>;
  srv(name: string, signal?: AbortSignal): Promise<readonly SrvRecord[]>;
  /** A and AAAA. */
  addresses(name: string, signal?: AbortSignal): Promise<readonly string[]>;
}

export interface SipServer {
  /** `sip:host[:port]` or `sips:host[:port]`. */
  sipUri: string;
  /** `auto`: chosen by NAPTR and SRV records. Always TLS with a `sips:` URI. */
  transport: SipTransport | 'auto';
}

export interface LocateOptions {
  dns: SipDns;
  /** Like `Math.random`. Orders SRV records of one priority by weight (RFC 2782). */
  random: () => number;
  signal?: AbortSignal | undefined;
}

/**
 * Finds where to send requests to a SIP server, in the order to try (RFC 3263 §4). A host with a port, and an address,
 * are used as they are. Otherwise NAPTR records select the transport if it is `auto`, SRV records the servers, and a
 * host without SRV records is the server itself.
 * @returns at most 32 addresses; none if the host has none
 * @throws SipError `trunk.bad_uri`, `dns.no_service` if the domain states that it offers no SIP service
 */
export async function locateServers(server: SipServer, options: LocateOptions): Promise<readonly NextHop[]> {
  const { scheme, host, address, port } = readTrunkUri(server.sipUri);
  const wanted = scheme === 'sips' ? 'tls' : server.transport;
  const usual = wanted === 'auto' ? 'udp' : wanted;
  if (address !== null) return [{ address, port: null, transport: usual }];
  if (port !== null) return await addressesAt(host, { port: null, transport: usual }, options);
  for (const service of await servicesOf(host, { wanted, scheme, options })) {
    const hops = await hopsOf(service, options);
    if (hops.length > 0) return hops.slice(0, MOST_HOPS);
  }
  return await addressesAt(host, { port: null, transport: usual }, options);
}

const MOST_HOPS = 32;
/** SRV records beyond these are ignored, which limits the queries that a domain can cause. */
const MOST_RECORDS = 16;

interface Service {
  /** Owner name of SRV records. */
  name: string;
  transport: SipTransport;
}

const SRV_PREFIX: Readonly<Record<SipTransport, string>> = { udp: '_sip._udp', tcp: '_sip._tcp', tls: '_sips._tcp' };
/** Without NAPTR records, in our order of preference (RFC 3263 §4.1). */
const PREFERRED: readonly SipTransport[] = ['udp', 'tcp', 'tls'];
const TRANSPORT_OF_SERVICE: Readonly<Record<string, SipTransport>> = {
  'SIP+D2U': 'udp',
  'SIP+D2T': 'tcp',
  'SIPS+D2T': 'tls',
};

async function servicesOf(
  host: string,
  { wanted, scheme, options }: { wanted: SipTransport | 'auto'; scheme: 'sip' | 'sips'; options: LocateOptions },
): Promise<readonly Service[]> {
  if (wanted !== 'auto') return [{ name: `${SRV_PREFIX[wanted]}.${host}`, transport: wanted }];
  const records = [...(await options.dns.naptr(host, options.signal))]
    .sort((a, b) => a.order - b.order || a.preference - b.preference)
    .slice(0, MOST_RECORDS);
  const named = records.flatMap(({ flags, service, replacement }) => {
    const transport = TRANSPORT_OF_SERVICE[service.toUpperCase()];
    const isUsable = transport !== undefined && flags.toLowerCase() === 's' && replacement !== '';
    return isUsable && (scheme === 'sip' || transport === 'tls') ? [{ name: replacement, transport }] : [];
  });
  if (named.length > 0) return named;
  return PREFERRED.map((transport) => ({ name: `${SRV_PREFIX[transport]}.${host}`, transport }));
}

async function hopsOf({ name, transport }: Service, options: LocateOptions): Promise<readonly NextHop[]> {
  const records = await options.dns.srv(name, options.signal);
  if (records.length === 1 && (records[0]!.name === '' || records[0]!.name === '.')) {
    // RFC 2782: "the service is decidedly not available at this domain".
    throw new SipError('dns.no_service', 'the domain offers no SIP service over this transport');
  }
  const ordered = orderByWeight(records.slice(0, MOST_RECORDS), options.random);
  const found = await Promise.all(
    ordered.map(({ name: target, port }) => addressesAt(target, { port, transport }, options)),
  );
  return found.flat();
}

async function addressesAt(
  name: string,
  { port, transport }: Omit<NextHop, 'address'>,
  { dns, signal }: LocateOptions,
): Promise<readonly NextHop[]> {
  const addresses = await dns.addresses(name, signal);
  return addresses.map((address) => ({ address, port, transport }));
}
