import { timesOf } from '../app/day-range.ts';
import type { UrlSearch } from '../app/url-search.ts';
import { ACTIONS } from './audit-actions.ts';
import type { AuditFilters } from './queries.ts';

/** Filters of an address. Ignores invalid values. */
export function auditFiltersOf(search: UrlSearch): AuditFilters {
  const action = ACTIONS.find((known) => known === search.action);
  const actor = /^[1-9]\d{0,8}$/.test(search.actor ?? '') ? Number(search.actor) : undefined;
  return { ...(action && { action }), ...(actor && { actor_user_id: actor }), ...timesOf(search) };
}
