import {
  type CallLeg,
  type GuestRole,
  isLegName,
  type LegEndpoint,
  type LegId,
  type SupervisionMode,
} from '../../machines/events.ts';

/** Derives the legs of a call from its event log; they are stored with the call. Pure functions. */

interface LegMove {
  event: string;
  leg: 'agent' | 'customer' | null;
  hangupCause: string | null;
  at: Date;
  data?: Readonly<Record<string, unknown>> | null;
}

/** Returns the legs after a move. `endpointOf` returns the dialed endpoint of an added leg. */
export function legsAfter(
  legs: readonly CallLeg[],
  move: LegMove,
  endpointOf: (legId: LegId) => LegEndpoint | null,
): readonly CallLeg[] {
  const at = move.at.toISOString();
  const legId = move.leg ?? legIdIn(move.data);
  const change = (changes: Partial<CallLeg>) =>
    legs.map((leg) => (leg.legId === legId && leg.state !== 'ended' ? { ...leg, ...changes } : leg));
  switch (move.event) {
    case 'call.initiated':
      return [...legs, newLeg('agent', 'agent')];
    case 'customer.dialing':
      return [...legs, newLeg('customer', 'customer')];
    case 'leg.dialing': {
      if (legId === null) return legs;
      const { role, mode } = move.data as { role: GuestRole; mode?: SupervisionMode };
      return [...legs, { ...newLeg(legId, role), ...dialed(endpointOf(legId)), mode: mode ?? null }];
    }
    case 'agent.ringing':
    case 'customer.ringing':
    case 'customer.early_media':
    case 'leg.ringing':
      return change({ state: 'ringing' });
    case 'agent.answered':
    // The bridge is the customer's answer.
    case 'call.bridged':
    case 'leg.joined':
      return change({ state: 'answered', joinedAt: at });
    case 'call.held':
      return change({ state: 'held' });
    case 'call.resumed':
      return change({ state: 'answered' });
    case 'call.muted':
      return change({ muted: true });
    case 'call.unmuted':
      return change({ muted: false });
    case 'transfer.completed':
      return change({ role: (move.data as { replaces: 'agent' | 'customer' }).replaces });
    case 'supervision.changed':
      return change({ mode: (move.data as { mode: SupervisionMode }).mode });
    case 'leg.left':
    case 'leg.failed':
      return change({ state: 'ended', leftAt: at, hangupCause: move.hangupCause });
    default:
      return legs;
  }
}

/** Returns the legs of an ending call: all remaining ones leave now. */
export function endedLegs(legs: readonly CallLeg[], { at, hangupCause }: { at: Date; hangupCause: string | null }) {
  return legs.map((leg): CallLeg => {
    if (leg.state === 'ended') return leg;
    return { ...leg, state: 'ended', leftAt: at.toISOString(), hangupCause };
  });
}

/** Returns the seconds to bill for added legs, each rounded up, from stored times. */
export function guestSecondsOf(legs: readonly CallLeg[], { from, to }: { from: Date | null; to: Date }): number {
  if (from === null) return 0;
  let seconds = 0;
  for (const { legId, joinedAt, leftAt } of legs) {
    if (isLegName(legId) || joinedAt === null) continue;
    const joined = Math.max(from.getTime(), Date.parse(joinedAt));
    const left = Math.min(to.getTime(), leftAt === null ? to.getTime() : Date.parse(leftAt));
    seconds += Math.max(0, Math.ceil((left - joined) / 1000));
  }
  return seconds;
}

function newLeg(legId: LegId, role: CallLeg['role']): CallLeg {
  return {
    legId,
    role,
    number: null,
    mode: null,
    state: 'dialing',
    muted: false,
    joinedAt: null,
    leftAt: null,
    hangupCause: null,
  };
}

function dialed(endpoint: LegEndpoint | null): Partial<CallLeg> {
  if (endpoint === null) return {};
  return endpoint.type === 'phone' ? { number: endpoint.number } : { userId: endpoint.userId };
}

function legIdIn(data: LegMove['data']): LegId | null {
  return typeof data?.leg_id === 'string' ? data.leg_id : null;
}
