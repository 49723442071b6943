import type { TrunkSilence } from '../sip/sip-gateway.ts';
import type { ReachabilityReason, TrunkHealth } from '../storage/queries/reachability.ts';

/** Consecutive unanswered requests until a carrier counts as down. */
const MISSES_UNTIL_DOWN = 2;

const REASON_OF_ANSWER = {
  options: 'options_answered',
  call: 'call_answered',
  register: 'register_answered',
} as const satisfies Record<string, ReachabilityReason>;

/**
 * Health of one carrier. A response to any request, with any status, means up. Two misses in a row mean down. Many
 * carriers ignore OPTIONS, so unless one has answered OPTIONS before, an unanswered call is needed too.
 */
export class LineHealth {
  #health: TrunkHealth;
  #misses = 0;
  #missedOptions = 0;
  #hasMissedCall = false;

  constructor(stored: TrunkHealth) {
    this.#health = stored;
  }

  get current(): TrunkHealth {
    return this.#health;
  }

  /** Returns whether a change must be stored. */
  answered(by: keyof typeof REASON_OF_ANSWER): boolean {
    const { state } = this.#health;
    let { answersOptions } = this.#health;
    if (by === 'options') answersOptions = true;
    // The carrier was up all the time, so it ignores OPTIONS.
    else if (this.#missedOptions > 0) answersOptions = false;
    this.#misses = 0;
    this.#missedOptions = 0;
    this.#hasMissedCall = false;
    const reason = state === 'up' ? this.#health.reason : REASON_OF_ANSWER[by];
    return this.#become({ state: 'up', reason, answersOptions });
  }

  /** Returns whether a change must be stored. */
  missed(by: 'options' | 'call', silence: TrunkSilence): boolean {
    const { state, answersOptions } = this.#health;
    if (by === 'options') this.#missedOptions += 1;
    else this.#hasMissedCall = true;
    // Calls to wrong numbers must not take down a carrier that answers OPTIONS: only OPTIONS decide.
    this.#misses = by === 'call' && answersOptions === true ? Math.max(1, this.#misses) : this.#misses + 1;
    const isProven = answersOptions === true || this.#hasMissedCall || silence === 'transport_error';
    if (state === 'down') return false;
    if (isProven && this.#misses >= MISSES_UNTIL_DOWN) {
      return this.#become({ state: 'down', reason: silence, answersOptions });
    }
    if (state === 'up' || by === 'call') return false;
    return this.#become({ state, reason: 'options_not_answered', answersOptions });
  }

  #become(next: TrunkHealth): boolean {
    const { state, reason, answersOptions } = this.#health;
    this.#health = next;
    return next.state !== state || next.reason !== reason || next.answersOptions !== answersOptions;
  }
}
