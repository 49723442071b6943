/** Whether this process can do its work, as `http/` sees it. Implemented in `readiness.actor.ts`. */
export interface Readiness {
  /** Never rejects: a check that fails is not ok. */
  check(): Promise<readonly ReadinessCheck[]>;
}

export interface ReadinessCheck {
  /** Such as `database`. */
  name: string;
  ok: boolean;
  /** A sentence without names, addresses or secrets; null when it is ok. */
  reason: string | null;
}
