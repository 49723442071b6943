import type { CallEvent, Leg } from '../call-data.ts';

export type LaneState = 'dialing' | 'ringing' | 'connected' | 'held';

export interface Span {
  state: LaneState;
  fromMs: number;
  toMs: number;
}

export interface Lane {
  leg: string;
  role: Leg['role'];
  spans: Span[];
}

interface LanesOptions {
  events: readonly CallEvent[];
  legs: readonly Pick<Leg, 'leg_id' | 'role'>[];
  /** End of a live call's lanes. */
  nowMs: number;
}

/** Computes the states of each leg over time from the call's events. Times are milliseconds since the epoch. */
export function lanesOf({ events, legs, nowMs }: LanesOptions): Lane[] {
  const lanes = new Map<string, Lane>();
  const open = new Map<string, { state: LaneState; fromMs: number }>();
  const enter = (leg: string, state: LaneState | null, atMs: number) => {
    if (!lanes.has(leg)) lanes.set(leg, { leg, role: roleOf(leg, legs), spans: [] });
    const current = open.get(leg);
    if (current) lanes.get(leg)!.spans.push({ ...current, toMs: atMs });
    if (state === null) open.delete(leg);
    else open.set(leg, { state, fromMs: atMs });
  };
  let lastMs = nowMs;
  let isOver = false;
  for (const event of events) {
    const atMs = Date.parse(event.at);
    // The call is bridged as soon as the customer answers, which has no event of its own.
    if (event.event === 'call.bridged') enter('customer', 'connected', atMs);
    const change = changeOf(event);
    if (change !== null) enter(change.leg, change.state, atMs);
    if (isTerminal(event)) {
      isOver = true;
      lastMs = atMs;
    }
  }
  for (const leg of [...open.keys()]) enter(leg, null, isOver ? lastMs : Math.max(nowMs, open.get(leg)!.fromMs));
  return [...lanes.values()];
}

/** State of the leg after an event; null: ended. */
const STATE_AFTER: Record<string, LaneState | null> = {
  'call.initiated': 'dialing',
  'customer.dialing': 'dialing',
  'leg.dialing': 'dialing',
  'agent.ringing': 'ringing',
  'customer.ringing': 'ringing',
  'customer.early_media': 'ringing',
  'leg.ringing': 'ringing',
  'agent.answered': 'connected',
  'leg.joined': 'connected',
  'call.resumed': 'connected',
  'call.held': 'held',
  'leg.left': null,
  'leg.failed': null,
};

function changeOf(event: CallEvent): { leg: string; state: LaneState | null } | null {
  const state = STATE_AFTER[event.event];
  const leg = event.event === 'call.initiated' ? 'agent' : legOfEvent(event);
  return state === undefined || leg === null ? null : { leg, state };
}

/** `agent`, `customer`, or the id of a leg that was added. */
export function legOfEvent({ event, leg, data }: Pick<CallEvent, 'event' | 'leg' | 'data'>): string | null {
  if (typeof data?.leg_id === 'string') return data.leg_id;
  if (leg !== null) return leg;
  const subject = event.split('.')[0]!;
  return subject === 'agent' || subject === 'customer' ? subject : null;
}

export function isTerminal({ state }: Pick<CallEvent, 'state'>): boolean {
  return state === 'completed' || state === 'failed' || state === 'rejected' || state === 'unknown';
}

function roleOf(leg: string, legs: LanesOptions['legs']): Leg['role'] {
  const known = legs.find(({ leg_id: id }) => id === leg);
  if (known) return known.role;
  return leg === 'agent' || leg === 'customer' ? leg : 'party';
}
