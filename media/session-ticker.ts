/**
 * Ticks the sessions of a thread in turn, each once per period, so that they do not delay packets in one burst. With
 * a thousand recorded calls, even a tenth of them would delay packets by 10 ms.
 */

const GROUPS = 50;
/** With few sessions, several groups share a wake-up. */
const FEW_SESSIONS = 50;
const GROUPS_PER_TURN_OF_FEW = 5;

interface Ticked {
  tick(): void;
}

export class SessionTicker {
  readonly #groups: Set<Ticked>[] = Array.from({ length: GROUPS }, () => new Set());
  readonly #groupOf = new Map<Ticked, Set<Ticked>>();
  readonly #msPerGroup: number;
  #timer: NodeJS.Timeout | null = null;
  #groupsPerTurn = 0;
  #nextGroup = 0;
  #added = 0;

  constructor(periodMs: number) {
    this.#msPerGroup = periodMs / GROUPS;
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
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = groups === 0 ? null : setInterval(() => this.#takeTurn(), groups * this.#msPerGroup);
  }

  #takeTurn(): void {
    for (let i = 0; i < this.#groupsPerTurn; i++) {
      for (const session of this.#groups[this.#nextGroup]!) session.tick();
      this.#nextGroup = (this.#nextGroup + 1) % GROUPS;
    }
  }
}
