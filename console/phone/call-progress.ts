/** State of a call from its events (`GET /dialer/click2call/{id}/stream`). */
export interface CallProgress {
  /** Stage of the customer: `starting` until dialed. */
  readonly stage: 'starting' | 'dialing' | 'ringing' | 'talking';
  /** ISO 8601. Null before both talk. */
  readonly talkingSince: string | null;
  /** The legs of agent and customer. A transfer replaces them. */
  readonly places: Readonly<Record<Place, string>>;
  readonly heldLegs: readonly string[];
  readonly transfer: Transfer | null;
  /** The last transfer failed because its target did not answer. */
  readonly hasTransferFailed: boolean;
  /** Outcome of the whole call. Null while it is live. */
  readonly outcome: Outcome | null;
}

export interface Outcome {
  readonly hangupCause: string | null;
  readonly at: string;
}

export type Place = 'agent' | 'customer';

export interface Transfer {
  readonly legId: string;
  readonly mode: 'blind' | 'attended';
  /** The target has answered and consults with the leg that it will replace. */
  readonly isAnswered: boolean;
}

/** As the stream sends it. */
export interface CallEvent {
  readonly sequence: number;
  readonly event: string;
  readonly leg: Place | null;
  readonly hangup_cause: string | null;
  readonly at: string;
  readonly data: Readonly<Record<string, unknown>> | null;
}

export const NO_PROGRESS: CallProgress = {
  stage: 'starting',
  talkingSince: null,
  places: { agent: 'agent', customer: 'customer' },
  heldLegs: [],
  transfer: null,
  hasTransferFailed: false,
  outcome: null,
};

type Reducer = (progress: CallProgress, event: CallEvent) => CallProgress;

const finish: Reducer = (progress, { hangup_cause: hangupCause, at }) => ({
  ...progress,
  transfer: null,
  outcome: { hangupCause, at },
});

const REDUCERS: Readonly<Record<string, Reducer>> = {
  'customer.dialing': (progress) => ({ ...progress, stage: 'dialing' }),
  'customer.ringing': (progress) => ({ ...progress, stage: 'ringing' }),
  'customer.early_media': (progress) => ({ ...progress, stage: 'ringing' }),
  'call.bridged': (progress, { at }) => ({ ...progress, stage: 'talking', talkingSince: at }),
  'call.held': (progress, event) => ({
    ...progress,
    heldLegs: [...without(progress.heldLegs, legOf(event)), legOf(event)],
  }),
  'call.resumed': (progress, event) => ({ ...progress, heldLegs: without(progress.heldLegs, legOf(event)) }),
  'leg.joined': (progress, event) =>
    progress.transfer?.legId === legOf(event)
      ? { ...progress, transfer: { ...progress.transfer, isAnswered: true } }
      : progress,
  'leg.left': (progress, event) => ({ ...progress, heldLegs: without(progress.heldLegs, legOf(event)) }),
  'transfer.started': (progress, event) => {
    const mode = event.data?.mode === 'attended' ? 'attended' : 'blind';
    return { ...progress, transfer: { legId: legOf(event), mode, isAnswered: false }, hasTransferFailed: false };
  },
  'transfer.completed': (progress, event) => {
    const { agent, customer } = progress.places;
    const isOfCustomer = event.data?.replaces === 'customer' || event.data?.replaces === customer;
    const places = isOfCustomer ? { agent, customer: legOf(event) } : { agent: legOf(event), customer };
    return { ...progress, places, transfer: null };
  },
  'transfer.failed': (progress) => ({ ...progress, transfer: null, hasTransferFailed: true }),
  'transfer.cancelled': (progress) => ({ ...progress, transfer: null }),
  'call.completed': finish,
  'call.not_answered': finish,
  'call.failed': finish,
  'call.temporaryfailed': finish,
};

export const PROGRESS_EVENTS: readonly string[] = Object.keys(REDUCERS);

export function progressAfter(progress: CallProgress, event: CallEvent): CallProgress {
  return Object.hasOwn(REDUCERS, event.event) ? REDUCERS[event.event]!(progress, event) : progress;
}

/** The leg that this one talks to; null for a further party or a supervisor, who talk to all. */
export function farLegOf({ places }: CallProgress, legId: string): string | null {
  if (legId === places.agent) return places.customer;
  return legId === places.customer ? places.agent : null;
}

/** The leg that "hold" controls: the other party's, which hears music, or this one in a conference. */
export function holdLegOf(progress: CallProgress, legId: string): string {
  return farLegOf(progress, legId) ?? legId;
}

function legOf({ leg, data }: CallEvent): string {
  return leg ?? String(data?.leg_id);
}

function without(legs: readonly string[], leg: string): string[] {
  return legs.filter((held) => held !== leg);
}
