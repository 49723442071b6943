import { nanoToDecimal } from '../runtime/money.ts';
import { type Principal, roleAllows, scopesAllow } from './auth.ts';
import { PERMISSIONS } from './permissions.ts';

export interface ChargeForHeaders {
  entryId: string;
  chargedNano: bigint;
  balanceAfterNano: bigint;
}

/**
 * Returns the three headers of billed responses (platform specification, Memory ingest). Includes the balance only for
 * callers who may read the wallet, as for `GET /billing/wallet`.
 */
export function billingHeaders(
  { entryId, chargedNano, balanceAfterNano }: ChargeForHeaders,
  principal: Principal,
): Record<string, string> {
  return {
    ...(mayReadWallet(principal) && { 'x-credit-balance': nanoToDecimal(balanceAfterNano) }),
    'x-credit-charged': nanoToDecimal(chargedNano),
    'x-billing-tx': entryId,
  };
}

/** Whether the caller may call `GET /billing/wallet`. */
export function mayReadWallet(principal: Principal): boolean {
  const { access, scope } = PERMISSIONS['GET /billing/wallet']!;
  return roleAllows(principal.role, access) && (scope === null || scopesAllow(principal, scope));
}
