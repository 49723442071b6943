import { isIP } from 'node:net';
import { TandemError } from '../machines/errors.ts';
import { readTrunkUri } from '../sip/trunk.ts';
import type { Sql } from '../storage/database.ts';
import { operatorWorkspaceId } from '../storage/queries/workspaces.ts';
import { createDnsResolve, type Resolve } from './callbacks/dns-resolve.ts';
import { type Cidr, classifyAddress, isLinkLocalOrMetadata } from './callbacks/public-address.ts';
import type { TrunkTarget, TrunkTargets } from './trunk-targets.ts';

export interface TrunkTargetsOptions {
  sql: Sql;
  /** TRUNK_ALLOW_CIDRS, parsed. */
  allowCidrs: readonly Cidr[];
  /** Default: DNS. */
  resolve?: Resolve;
}

export function createTrunkTargets({
  sql,
  allowCidrs,
  resolve = createDnsResolve(),
}: TrunkTargetsOptions): TrunkTargets {
  /** The first workspace stays the first. */
  let operator: string | null = null;

  async function isOperators({ ownerWorkspaceId }: TrunkTarget): Promise<boolean> {
    operator ??= await operatorWorkspaceId(sql);
    return ownerWorkspaceId === null || ownerWorkspaceId === operator;
  }

  return {
    async check(target, signal) {
      const host = readTrunkUri(target.sipUri).host.replace(/^\[|\]$/g, '');
      const trusted = await isOperators(target);
      const addresses = await addressesOf(host, { resolve, signal }).catch((cause) => {
        signal?.throwIfAborted();
        if (cause instanceof TandemError) throw cause;
        if (trusted) return [];
        throw notAllowed('names a host without addresses. Name a host with A or AAAA records.', cause);
      });
      for (const address of addresses) {
        if (isLinkLocalOrMetadata(address)) throw notAllowed('leads to a link-local or metadata address.');
        if (!trusted && classifyAddress(address, allowCidrs) === 'refused') {
          throw notAllowed('leads to a private network. Ask the operator to list it in TRUNK_ALLOW_CIDRS.');
        }
      }
      if (trusted || isIP(host) !== 0) return null;
      return addresses.find((address) => isIP(address) === 4) ?? addresses[0]!;
    },
  };
}

async function addressesOf(
  host: string,
  { resolve, signal }: { resolve: Resolve; signal: AbortSignal | undefined },
): Promise<readonly string[]> {
  if (isIP(host) !== 0) return [host];
  if (/^localhost$|\.localhost$/i.test(host)) return ['127.0.0.1'];
  // 2130706433 and 0x7f.1 are 127.0.0.1 to some resolvers. No top-level domain is a number (RFC 3696 §2).
  if (/(^|\.)(\d+|0x[\da-f]*)$/i.test(host)) throw notAllowed('has a number for a host name.');
  const addresses = await resolve(host, signal);
  if (addresses.length === 0) throw new Error('no addresses');
  return addresses;
}

function notAllowed(reason: string, cause?: unknown): TandemError {
  return new TandemError('TRUNK_HOST_NOT_ALLOWED', `sip_uri ${reason}`, cause === undefined ? {} : { cause });
}
