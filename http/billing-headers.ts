import { Type } from 'typebox';
import { nanoToDecimal } from './schemas/money.ts';

/** The charge that a response reports. */
export interface ChargeForHeaders {
  /** Id of the ledger entry. */
  entryId: string;
  chargedNano: bigint;
  balanceAfterNano: bigint;
}

/** The three headers of every billed response (platform specification, Memory ingest). */
export function billingHeaders({ entryId, chargedNano, balanceAfterNano }: ChargeForHeaders): Record<string, string> {
  return {
    'x-credit-balance': nanoToDecimal(balanceAfterNano),
    'x-credit-charged': nanoToDecimal(chargedNano),
    'x-billing-tx': entryId,
  };
}

/** The same headers for the document. */
export const BILLING_HEADERS = {
  'x-credit-balance': Type.String({
    description: 'Wallet balance after the charge, in USD. Only sent if something was charged.',
  }),
  'x-credit-charged': Type.String({ description: 'Charged amount, in USD.' }),
  'x-billing-tx': Type.String({ description: 'Id of the entry in the usage log.' }),
};
