export type ReachabilityState = 'unknown' | 'up' | 'down';

/** Reasons of a state. The first two belong to `unknown`, the last two to `down`, the others to `up`. */
export const REACHABILITY_REASONS = [
  'not_checked',
  'options_not_answered',
  'options_answered',
  'call_answered',
  'register_answered',
  'no_response',
  'transport_error',
] as const;
export type ReachabilityReason = (typeof REACHABILITY_REASONS)[number];

/** Health of one address. */
export interface TrunkHealth {
  state: ReachabilityState;
  reason: ReachabilityReason;
  /** Null: unknown. False: the carrier answered calls but not OPTIONS. */
  answersOptions: boolean | null;
}
