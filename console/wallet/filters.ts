import { timesOf } from '../app/day-range.ts';
import { idOf, type UrlSearch } from '../app/url-search.ts';
import { ledgerText, paymentsText, serviceText } from '../text/wallet.ts';

const { diarization: _, ...charged } = serviceText;

/** Names of the products that the ledger can filter by. */
export const SERVICES = charged;

/** Filters of an address in the API's form. Ignores invalid values. */
export function ledgerFilters({ service, status, key, ...search }: UrlSearch): Record<string, string> {
  const keyId = idOf(key);
  return {
    ...(isOneOf(SERVICES, service) && { service }),
    ...(isOneOf(ledgerText.statuses, status) && { status }),
    ...(keyId && { api_key_id: String(keyId) }),
    ...timesOf(search),
  };
}

/** Filters of an address in the API's form. Ignores invalid values. */
export function paymentFilters({ type, paid, ...search }: UrlSearch): Record<string, string> {
  return {
    ...(isOneOf(paymentsText.types, type) && { payment_type: type }),
    ...(isOneOf(paymentsText.statuses, paid) && { status: paid }),
    ...timesOf(search),
  };
}

function isOneOf(labels: object, value: string | undefined): value is string {
  return value !== undefined && Object.hasOwn(labels, value);
}
