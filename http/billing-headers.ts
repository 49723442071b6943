import { type Principal, roleAllows, scopesAllow } from './auth.ts';
import { PERMISSIONS } from './permissions.ts';
import { nanoToDecimal } from './schemas/money.ts';

/** The charge that a response reports. */
export interface ChargeForHeaders {
  /** Id of the ledger entry. */
  entryId: string;
  chargedNano: bigint;
  balanceAfterNano: bigint;
}

/**
 * The three headers of every billed response (platform specification, Memory ingest). The balance is only for callers who
 * may read the wallet, as by `GET /billing/wallet`.
 */
export function billingHeaders(
  { entryId, chargedNano, balanceAfterNano }: ChargeForHeaders,
  principal: Principal,
): Record<string, string> {
  const { access, scope } = PERMISSIONS['GET /billing/wallet']!;
  const maySeeBalance = roleAllows(principal.role, access) && (scope === null || scopesAllow(principal, scope));
  return {
    ...(maySeeBalance && { 'x-credit-balance': nanoToDecimal(balanceAfterNano) }),
    'x-credit-charged': nanoToDecimal(chargedNano),
    'x-billing-tx': entryId,
  };
}
