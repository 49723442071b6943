import { systemPacerClock } from './relay/frame-pacer.ts';

/**
 * Ticks the sessions of a thread in turn, each once per period, so that they do not delay packets in one burst. With
 * a thousand recorded calls, even a tenth of them would delay packets by 10 ms.
 */

const GROUPS = 50;
/** With few sessions, several groups share a wake-up. */
const FEW_SESSIONS = 50;
const GROUPS_PER_TURN_OF_FEW = 5;
/** A longer gap between turns is a stall of this thread, after which packets wait in the sockets. */
const LATE_TURN_MS = 50;

interface Ticked {
  /** @param readUntilMs packets that arrived until then were read */
  tick(readUntilMs: number): void;
}

export class SessionTicker {
  readonly #groups: Set<Ticked>[] = Array.from({ length: GROUPS }, () => new Set());
  readonly #groupOf = new Map<Ticked, Set<Ticked>>();
  readonly #periodMs: number;
  /** Clock of the sessions. */
  readonly #nowMs: () => number;
  #timer: NodeJS.Timeout | null = null;
  #groupsPerTurn = 0;
  #nextGroup = 0;
  #added = 0;
  #turnAtMs = 0;
  /** The last stall. */
  #stalledFromMs = 0;
  #stalledUntilMs = Number.NEGATIVE_INFINITY;

  constructor(periodMs: number, nowMs: () => number = systemPacerClock.nowMs) {
    this.#periodMs = periodMs;
    this.#nowMs = nowMs;
  }

  add(session: Ticked): void {
    const group = this.#groups[this.#added % GROUPS]!;
    this.#added += 1;
    group.add(session);
    this.#groupOf.set(session, group);
    this.#setTimer();
  }

  /** Idempotent. */
  remove(session: Ticked): void {
    this.#groupOf.get(session)?.delete(session);
    this.#groupOf.delete(session);
    this.#setTimer();
  }

  #setTimer(): void {
    const sessions = this.#groupOf.size;
    const groups = sessions === 0 ? 0 : sessions <= FEW_SESSIONS ? GROUPS_PER_TURN_OF_FEW : 1;
    if (groups === this.#groupsPerTurn) return;
    this.#groupsPerTurn = groups;
    if (this.#timer === null) this.#turnAtMs = this.#nowMs();
    else clearInterval(this.#timer);
    this.#timer = groups === 0 ? null : setInterval(() => this.#takeTurn(), (groups * this.#periodMs) / GROUPS);
  }

  #takeTurn(): void {
    const nowMs = this.#nowMs();
    if (nowMs - this.#turnAtMs > LATE_TURN_MS) {
      this.#stalledFromMs = this.#turnAtMs;
      this.#stalledUntilMs = nowMs;
    }
    this.#turnAtMs = nowMs;
    // The waiting packets are read within a period.
    const readUntilMs = nowMs - this.#stalledUntilMs < this.#periodMs ? this.#stalledFromMs : nowMs;
    for (let i = 0; i < this.#groupsPerTurn; i++) {
      for (const session of this.#groups[this.#nextGroup]!) session.tick(readUntilMs);
      this.#nextGroup = (this.#nextGroup + 1) % GROUPS;
    }
  }
}
