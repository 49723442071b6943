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

/** Shared by the client and server sides of the user agent. */
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
 * Resolves the destination of an in-dialog request. Contacts mostly hold an address, which no certificate proves. So
 * over TLS the request takes the INVITE's connection, or a new one to a peer that proves the same name. So does a
 * request to a private address behind a public one.
 */
export function resolveWithin(
  { resolve }: CoreContext,
  { flow }: Dialog,
  hop: NextHop,
  done: (remote: Remote | null) => void,
): void {
  const reachable = (remote: Remote) => (isInsideOf(flow.host, remote.host) ? flow : remote);
  if (hop.transport !== 'tls' || flow.transport !== 'tls' || isIP(hop.host) === 0) {
    resolve(hop, (remote) => done(remote && reachable(remote)));
  } else {
    const remote = reachable(remoteAt(hop, hop.host));
    done({ ...remote, connectionId: flow.connectionId, name: flow.name ?? flow.host });
  }
}

/** As `nextHopOf`, but null if unreachable. */
export function reachableHop(context: CoreContext, uri: string): NextHop | null {
  try {
    return nextHopOf(uri, context.transports);
  } catch (error) {
    if (error instanceof SipParseError) return null;
    throw error;
  }
}
