/** Readiness of this process, for `http/`. Implemented in `readiness.actor.ts`. */
export interface Readiness {
  /** Never rejects: a failing check has `ok: false`. */
  check(): Promise<readonly ReadinessCheck[]>;
}

export interface ReadinessCheck {
  /** Such as `database`. */
  name: string;
  ok: boolean;
  /** A sentence without names, addresses or secrets; null if `ok`. */
  reason: string | null;
}
