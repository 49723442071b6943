import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { TandemError } from '../machines/errors.ts';
import { locateServers, type SipDns } from '../sip/server-location.ts';
import type { NextHop } from '../sip/sip-gateway.ts';
import { readTrunkUri } from '../sip/trunk.ts';
import type { Sql } from '../storage/database.ts';
import { operatorWorkspaceId } from '../storage/queries/workspaces.ts';
import { createDnsResolve, type Resolve } from './callbacks/dns-resolve.ts';
import { type Cidr, classifyAddress, isLinkLocalOrMetadata } from './callbacks/public-address.ts';
import { createServiceDns, type ServiceDns } from './service-dns.ts';
import type { TrunkTarget, TrunkTargets } from './trunk-targets.ts';

export interface TrunkTargetsOptions {
  sql: Sql;
  /** TRUNK_ALLOW_CIDRS, parsed. */
  allowCidrs: readonly Cidr[];
  /** A and AAAA records. Default: DNS. */
  resolve?: Resolve;
  /** NAPTR and SRV records. Default: DNS. */
  services?: ServiceDns;
  /** Default `Math.random`. */
  random?: () => number;
}

export function createTrunkTargets({
  sql,
  allowCidrs,
  resolve = createDnsResolve(),
  services = createServiceDns(),
  random = Math.random,
}: TrunkTargetsOptions): TrunkTargets {
  /** Cached: the first workspace never changes. */
  let operator: string | null = null;

  async function isOperators({ ownerWorkspaceId }: TrunkTarget): Promise<boolean> {
    operator ??= await operatorWorkspaceId(sql);
    return ownerWorkspaceId === null || ownerWorkspaceId === operator;
  }

  async function locate(target: TrunkTarget, isTrusted: boolean, signal?: AbortSignal): Promise<readonly NextHop[]> {
    /** Names of the operator may be in /etc/hosts, so they need no DNS server. */
    async function optional<Records>(
      name: string,
      query: () => Promise<readonly Records[]>,
    ): Promise<readonly Records[]> {
      if (LOCALHOST.test(name)) return [];
      return await query().catch((error) => {
        if (!isTrusted || signal?.aborted) throw error;
        return [];
      });
    }
    const dns: SipDns = {
      naptr: (name) => optional(name, () => services.naptr(name, signal)),
      srv: (name) => optional(name, () => services.srv(name, signal)),
      addresses: async (name) => await addressesOf(name, { resolve, isTrusted, signal }),
    };
    const hops = await locateServers(target, { dns, random, signal });
    if (hops.length === 0) throw new Error('no addresses');
    return hops;
  }

  return {
    async locate(target, signal) {
      const isTrusted = await isOperators(target);
      const { host, address: literal } = readTrunkUri(target.sipUri);
      // Some resolvers read 2130706433 and 0x7f.1 as 127.0.0.1. No top-level domain is a number (RFC 3696 §2).
      if (literal === null && /(^|\.)(\d+|0x[\da-f]*)$/i.test(host)) throw notAllowed('has a number for a host name.');
      const hops = await locate(target, isTrusted, signal).catch((cause): readonly NextHop[] => {
        signal?.throwIfAborted();
        if (isTrusted) return [];
        throw notAllowed('names a host without addresses. Name a host with SRV, A or AAAA records.', cause);
      });
      for (const { address } of hops) {
        if (isLinkLocalOrMetadata(address)) throw notAllowed('leads to a link-local or metadata address.');
        if (!isTrusted && classifyAddress(address, allowCidrs) === 'refused') {
          throw notAllowed('leads to a private network. Ask the operator to list it in TRUNK_ALLOW_CIDRS.');
        }
      }
      return hops;
    },
  };
}

/** Never queried in DNS (RFC 6761 §6.3). */
const LOCALHOST = /(^|\.)localhost$/i;

/** Returns IPv4 first, because most carriers respond there. Names of the operator may also be in /etc/hosts. */
async function addressesOf(
  name: string,
  { resolve, isTrusted, signal }: { resolve: Resolve; isTrusted: boolean; signal: AbortSignal | undefined },
): Promise<readonly string[]> {
  if (LOCALHOST.test(name)) return ['127.0.0.1'];
  const found = await resolve(name, signal).catch(async (error) => {
    if (!isTrusted || signal?.aborted) throw error;
    return (await lookup(name, { all: true })).map(({ address }) => address);
  });
  return found.toSorted((one, other) => isIP(one) - isIP(other));
}

function notAllowed(reason: string, cause?: unknown): TandemError {
  return new TandemError('TRUNK_HOST_NOT_ALLOWED', `sip_uri ${reason}`, cause === undefined ? {} : { cause });
}
