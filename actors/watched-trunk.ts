import type { Clock } from '../runtime/clock.ts';
import { orderByWeight } from '../runtime/weighted-order.ts';
import { type Gateway, gatewaysOf, healthOf } from '../storage/queries/trunk-gateways.ts';
import type { TrunkState } from '../storage/queries/trunk-health.ts';
import type { ProbeOutcome } from '../storage/queries/trunk-probes.ts';
import type { DialedTrunk } from '../storage/queries/trunks.ts';
import { LineHealth } from './line-health.ts';

export interface WatchedLine {
  gateway: Gateway;
  health: LineHealth;
  /** When the state changed; null while unknown. */
  since: string | null;
  /** The gateway accepts no calls until then (Retry-After). */
  pausedUntilMs: number;
  probing: Promise<ProbeOutcome | null> | null;
  /** Resolves when the last probe is stored. Calls do not wait for it. */
  keeping: Promise<void>;
}

/** Interval of trial calls to a carrier that is down. */
const TRIAL_INTERVAL_MS = 60_000;

export class WatchedTrunk {
  readonly lines: readonly WatchedLine[];
  mode: DialedTrunk['healthMode'];
  probeDueMs: number;
  isUnsaved = false;
  /** Changes are stored one after the other. */
  saving: Promise<void> = Promise.resolve();
  readonly #clock: Clock;
  /** From then on, a trial call is allowed while the trunk is down. */
  #trialDueMs: number;

  constructor(row: DialedTrunk, clock: Clock) {
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
        probing: null,
        keeping: Promise.resolve(),
      };
    });
  }

  /** Up when one gateway is up, down when all are down. */
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

  /** Allows no further trial call for an interval. */
  postponeTrial(): void {
    this.#trialDueMs = this.#clock.monotonicMs() + TRIAL_INTERVAL_MS;
  }

  /** Orders the gateways for a call. Those that are down come last; those with a pause are left out. */
  order(random: () => number): WatchedLine[] {
    const nowMs = this.#clock.monotonicMs();
    const byPause = [...this.lines].sort((a, b) => a.pausedUntilMs - b.pausedUntilMs);
    const open = this.lines.filter(({ pausedUntilMs }) => pausedUntilMs <= nowMs);
    // Do not reject the call: use the gateway whose pause ends first.
    if (open.length === 0) return byPause.slice(0, 1);
    const isDown = ({ health }: WatchedLine) => health.current.state === 'down';
    const ordered = orderByWeight(
      open.map((line) => ({ line, priority: line.gateway.priority, weight: line.gateway.weight })),
      random,
    ).map(({ line }) => line);
    return [...ordered.filter((line) => !isDown(line)), ...ordered.filter(isDown)];
  }
}
