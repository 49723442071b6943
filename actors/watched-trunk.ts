import type { Clock } from '../runtime/clock.ts';
import { orderByWeight } from '../runtime/weighted-order.ts';
import { type Gateway, gatewaysOf, healthOf } from '../storage/queries/trunk-gateways.ts';
import type { TrunkState } from '../storage/queries/trunk-health.ts';
import type { TrunkRow } from '../storage/queries/trunks.ts';
import { LineHealth } from './line-health.ts';

/** One gateway of a trunk, as a server sees it. */
export interface WatchedLine {
  gateway: Gateway;
  health: LineHealth;
  /** When its state changed; null while unknown. */
  since: string | null;
  /** It asked for no calls until then (Retry-After). */
  pausedUntilMs: number;
  isProbing: boolean;
}

/** Between calls that try a carrier that is down. */
const TRIAL_INTERVAL_MS = 60_000;

/** What one server knows of a trunk and its gateways. */
export class WatchedTrunk {
  readonly lines: readonly WatchedLine[];
  mode: TrunkRow['healthMode'];
  probeDueMs: number;
  /** The last change could not be stored. */
  isUnsaved = false;
  /** Changes are stored one after the other. */
  saving: Promise<void> = Promise.resolve();
  readonly #clock: Clock;
  /** From then on a call may try it although it is down. */
  #trialDueMs: number;

  constructor(row: TrunkRow, clock: Clock) {
    this.#clock = clock;
    this.mode = row.healthMode;
    this.probeDueMs = clock.monotonicMs();
    this.#trialDueMs = clock.monotonicMs();
    this.lines = gatewaysOf(row).map((gateway) => {
      const stored = healthOf(row, gateway);
      return {
        gateway,
        health: new LineHealth(stored ?? { state: 'unknown', reason: 'not_checked', answersOptions: null }),
        since: stored?.since ?? null,
        pausedUntilMs: 0,
        isProbing: false,
      };
    });
  }

  /** Up when one gateway is, down when all are. */
  get state(): TrunkState {
    const known = this.lines.map(({ gateway: { sipUri, transport }, health, since }) => {
      return { sipUri, transport, since, ...health.current };
    });
    const up = known.find(({ state }) => state === 'up');
    const { state, reason } = up ?? known.find((each) => each.state === 'unknown') ?? known[0]!;
    return { state, reason, gateways: known };
  }

  get refusesCalls(): boolean {
    if (this.mode === 'none' || this.state.state !== 'down') return false;
    return this.#clock.monotonicMs() < this.#trialDueMs;
  }

  /** No other call tries it for a while if it is down. */
  postponeTrial(): void {
    this.#trialDueMs = this.#clock.monotonicMs() + TRIAL_INTERVAL_MS;
  }

  /** Gateways for a call, in the order to try them. Those that are down come last, and those that asked for a pause never. */
  order(random: () => number): WatchedLine[] {
    const nowMs = this.#clock.monotonicMs();
    const byPause = [...this.lines].sort((a, b) => a.pausedUntilMs - b.pausedUntilMs);
    const open = this.lines.filter(({ pausedUntilMs }) => pausedUntilMs <= nowMs);
    // A call is not refused for that: the one whose pause ends first takes it.
    if (open.length === 0) return byPause.slice(0, 1);
    const isDown = ({ health }: WatchedLine) => health.current.state === 'down';
    const ordered = orderByWeight(
      open.map((line) => ({ line, priority: line.gateway.priority, weight: line.gateway.weight })),
      random,
    ).map(({ line }) => line);
    return [...ordered.filter((line) => !isDown(line)), ...ordered.filter(isDown)];
  }
}
