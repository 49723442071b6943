export type ReachabilityState = 'unknown' | 'up' | 'down';

/** Why the state is what it is. The first two belong to `unknown`, those of an answer to `up`, the last two to `down`. */
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

/** Of one address. */
export interface TrunkHealth {
  state: ReachabilityState;
  reason: ReachabilityReason;
  /** Null: not known yet. False: the carrier answered calls while it ignored OPTIONS. */
  answersOptions: boolean | null;
}
