import { Type } from 'typebox';
import { nanoToDecimal } from './schemas/money.ts';

/** What a handler knows of the charge its response is for. */
export interface ChargeForHeaders {
  /** Of the ledger entry, which is the audit row. */
  entryId: string;
  chargedNano: bigint;
  balanceAfterNano: bigint;
}

/** The three headers of every response that cost something (platform-api, Memory ingest). */
export function billingHeaders({ entryId, chargedNano, balanceAfterNano }: ChargeForHeaders): Record<string, string> {
  return {
    'x-credit-balance': nanoToDecimal(balanceAfterNano),
    'x-credit-charged': nanoToDecimal(chargedNano),
    'x-billing-tx': entryId,
  };
}

/** The same for the document: `headers` of a response schema. */
export const BILLING_HEADERS = {
  'x-credit-balance': Type.String({
    description: 'Balance after the charge, in USD. Only when something was charged.',
  }),
  'x-credit-charged': Type.String({ description: 'What was charged, in USD.' }),
  'x-billing-tx': Type.String({ description: 'UUID of the entry in the usage log.' }),
};
