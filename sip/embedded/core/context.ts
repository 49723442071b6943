import { SipParseError } from '../../message/index.ts';
import type { Clock } from '../clock.ts';
import type { SipTimers } from '../sip-timers.ts';
import type { TransactionLayer } from '../transactions/layer.ts';
import { type NextHop, nextHopOf, type Resolver } from '../transport/next-hop.ts';
import type { TransportName } from '../transport/remote.ts';
import type { Dialog, DialogTable, EndReason } from './dialogs.ts';
import type { LocalAddress } from './outgoing.ts';

/** What the client and the server side of the user agent share. */
export interface CoreContext {
  readonly layer: TransactionLayer;
  readonly dialogs: DialogTable;
  readonly clock: Clock;
  readonly timers: SipTimers;
  readonly local: LocalAddress;
  readonly transports: readonly TransportName[];
  readonly resolve: Resolver;
}

/** Ends a dialog that its application cannot or will not end: BYE to the peer, and the same BYE to the application. */
export type EndDialog = (dialog: Dialog, reason: EndReason) => void;

/** As `nextHopOf`, with null for whatever cannot be reached at all. */
export function reachableHop(context: CoreContext, uri: string): NextHop | null {
  try {
    return nextHopOf(uri, context.transports);
  } catch (error) {
    if (error instanceof SipParseError) return null;
    throw error;
  }
}
