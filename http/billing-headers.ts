import { Type } from 'typebox';
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

/** The same headers for the document. */
export const BILLING_HEADERS = {
  'x-credit-balance': Type.String({
    description:
      'Wallet balance after the charge, in USD. Only for owners, with a key that may read the wallet, and only if something was charged.',
  }),
  'x-credit-charged': Type.String({ description: 'Charged amount, in USD.' }),
  'x-billing-tx': Type.String({ description: 'Id of the entry in the usage log.' }),
};
