import type { components } from '@tandem/client';

export type Call = components['schemas']['Call'];
export type CallEvent = components['schemas']['CallEvent'];
export type Leg = Call['legs'][number];
/** A call as the live stream sends it, without fields that never change. */
export type CallSummary = Omit<Call, 'metadata' | 'callback_url' | 'callback_secret_last4'>;

/** The leg that has this role now. A transfer gives the role to the target's leg. */
export function legOf({ legs }: Pick<Call, 'legs'>, role: 'agent' | 'customer'): Leg | undefined {
  return legs.findLast((leg) => leg.role === role && leg.state !== 'ended') ?? legs.find((leg) => leg.role === role);
}

/** Legs beside agent and customer that have not left. */
export function guestsOf({ legs }: Pick<Call, 'legs'>): Leg[] {
  return legs.filter(({ role, state }) => (role === 'party' || role === 'supervisor') && state !== 'ended');
}

export function isTalking({ state }: Pick<Call, 'state'>): boolean {
  return state === 'bridged';
}

/** Total charges so far; null before the first. */
export function totalCost({
  cost_usd: talk,
  legs_cost_usd: legs,
  speech_cost_usd: speech,
}: Pick<Call, 'cost_usd' | 'legs_cost_usd' | 'speech_cost_usd'>): number | null {
  if (talk === null && legs === null && speech === null) return null;
  return (talk ?? 0) + (legs ?? 0) + (speech ?? 0);
}
