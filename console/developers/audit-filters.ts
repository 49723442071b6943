import { timesOf } from '../app/day-range.ts';
import { idOf, type UrlSearch } from '../app/url-search.ts';
import { ACTIONS, type AuditFilters } from './audit-actions.ts';

/** Filters of an address. Ignores invalid values. */
export function auditFiltersOf(search: UrlSearch): AuditFilters {
  const action = ACTIONS.find((known) => known === search.action);
  const actor = idOf(search.actor);
  return { ...(action && { action }), ...(actor && { actor_user_id: actor }), ...timesOf(search) };
}
