import type { Sql } from '../../storage/database.ts';
import {
  claimDelivery,
  dueDeliveries,
  getDelivery,
  recordAttempt,
  releaseDelivery,
} from '../../storage/queries/deliveries.ts';
import type { DeliveryStore } from './ports.ts';

/** Deliveries in Postgres, where they were committed together with the outcome they tell. */
export function createDeliveryStore(sql: Sql): DeliveryStore {
  return {
    get: (id) => getDelivery(sql, id),
    due: (query) => dueDeliveries(sql, query),
    claim: (request) => claimDelivery(sql, request),
    record: (attempt) => recordAttempt(sql, attempt),
    release: (claimed) => releaseDelivery(sql, claimed),
  };
}
