import { isIP } from 'node:net';
import { isInsideOf } from '../../../runtime/network-address.ts';
import { SipParseError } from '../../message/index.ts';
import type { Clock } from '../clock.ts';
import type { SipTimers } from '../sip-timers.ts';
import type { TransactionLayer } from '../transactions/layer.ts';
import { type NextHop, nextHopOf, type Resolver, remoteAt } from '../transport/next-hop.ts';
import type { Remote, TransportName } from '../transport/remote.ts';
import type { Dialog, DialogTable } from './dialogs.ts';
import type { LocalAddress } from './outgoing.ts';
import type { SessionTimers } from './session-timers.ts';

/** What the client and the server side of the user agent share. */
export interface CoreContext {
  readonly layer: TransactionLayer;
  readonly dialogs: DialogTable;
  readonly clock: Clock;
  readonly timers: SipTimers;
  readonly local: LocalAddress;
  readonly transports: readonly TransportName[];
  readonly resolve: Resolver;
  readonly sessionTimers: SessionTimers;
}

/**
 * Where a request within a dialog goes. Contacts mostly hold an address, which no certificate proves: over TLS such a
 * request takes the connection of the INVITE, or a new one to a peer that proves the same name. So does one to a private
 * address behind a public one.
 */
export function resolveWithin(
  { resolve }: CoreContext,
  { flow }: Dialog,
  hop: NextHop,
  done: (remote: Remote | null) => void,
): void {
  if (hop.transport !== 'tls' || flow.transport !== 'tls' || isIP(hop.host) === 0) {
    resolve(hop, (remote) => done(remote && isInsideOf(flow.host, remote.host) ? flow : remote));
  } else done({ ...remoteAt(hop, hop.host), connectionId: flow.connectionId, name: flow.name ?? flow.host });
}

/** As `nextHopOf`, with null for whatever cannot be reached at all. */
export function reachableHop(context: CoreContext, uri: string): NextHop | null {
  try {
    return nextHopOf(uri, context.transports);
  } catch (error) {
    if (error instanceof SipParseError) return null;
    throw error;
  }
}
