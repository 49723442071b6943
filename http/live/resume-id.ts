import type { ChangesCursor } from '../../storage/queries/call-changes.ts';

/** Stream event ids contain what the client has seen, and when: `<unix ms>-<cursor>`. */
export interface SeenUpTo {
  at: Date;
  cursor: ChangesCursor;
}

/** A cursor lists running transactions, which are few. Headers limit longer ids. */
const MAX_ID_CHARACTERS = 4000;

export function resumeIdOf({ at, cursor }: SeenUpTo): string {
  const id = `${at.getTime()}-${cursor}`;
  if (id.length <= MAX_ID_CHARACTERS) return id;
  // Treats commits beside running transactions as unseen: duplicates are better than losses.
  const [xmin] = cursor.split(':');
  return `${at.getTime()}-${xmin}:${xmin}:`;
}

/** Null for an invalid id. Does not check its cursor. */
export function readResumeId(id: unknown): SeenUpTo | null {
  if (typeof id !== 'string' || id.length > MAX_ID_CHARACTERS) return null;
  const [, at, cursor] = /^(\d{1,15})-([\d:,]+)$/.exec(id) ?? [];
  return at === undefined || cursor === undefined ? null : { at: new Date(Number(at)), cursor };
}
