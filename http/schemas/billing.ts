import { Type } from 'typebox';
import { nanoToDecimal, nanoToUsd } from '../../runtime/money.ts';
import type { PaymentRow } from '../../storage/queries/payments.ts';
import type { UsageRow } from '../../storage/queries/usage.ts';
import type { CsvCell } from '../csv.ts';
import { nullable, TimeSchema } from './envelope.ts';

const usd = (description: string) => Type.Number({ description: `${description}, in USD.` });

export const WalletSchema = Type.Object(
  {
    balance: usd('Available plus held amount'),
    held: usd('Amount reserved for running calls and requests'),
    available: usd('Amount you can spend; negative if a refund or dispute took back more than was left'),
    currency: Type.Literal('USD'),
  },
  { examples: [{ balance: 25.5, held: 0.15, available: 25.35, currency: 'USD' }] },
);

export const ServiceSchema = Type.Enum(['tts', 'stt', 'llm', 'memory', 'call', 'number'], {
  description: 'Service that was used.',
});
export const UsageStatusSchema = Type.Enum(['succeeded', 'partial', 'failed', 'refunded'], {
  description:
    '`partial`, `failed`: the wallet covered only a part, or nothing, of the charge. `refunded`: a later entry refunds it.',
});
export const PaymentTypeSchema = Type.Enum(['one_time', 'subscription', 'admin_bonus'], {
  description: 'Kind of payment. `admin_bonus`: credited by the operator.',
});
export const PaymentStatusSchema = Type.Enum(['succeeded', 'pending', 'failed'], {
  description: 'Status of the payment.',
});

export const UsageSchema = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'Id of the entry, as in the `x-billing-tx` header.' }),
    service: ServiceSchema,
    operation: Type.String({ description: 'Operation that was charged.', examples: ['click2call', 'rent'] }),
    resource_id: nullable(Type.String({ description: 'Charged resource: a call, a number or a memory.' })),
    quantity: Type.Number({ description: 'Quantity in units, rounded. `amount` is exact.' }),
    unit: Type.String({
      description: 'Billing unit.',
      examples: ['minute', 'character', 'token', 'month', '1000 characters'],
    }),
    unit_price: usd('Price per unit'),
    amount: usd('Charged or refunded amount'),
    direction: Type.Enum(['debit', 'refund'], { description: '`debit`: a charge. `refund`: returns a charge.' }),
    balance_before: usd('Balance before the entry'),
    balance_after: usd('Balance after the entry'),
    status: UsageStatusSchema,
    reverses_id: nullable(Type.String({ description: 'Entry that this refund reverses.' })),
    api_key_id: nullable(Type.Integer({ description: 'API key that made the request.' })),
    user_id: nullable(Type.Integer({ description: 'User who made the request.' })),
    created_at: TimeSchema,
  },
  {
    examples: [
      {
        id: '5f0c6f0e-8a54-4b0e-9f0e-2d2f3c1b7a10',
        service: 'call',
        operation: 'click2call',
        resource_id: '0d9c0c7e-6f1b-4a50-b9a5-5e2f0a6f3c11',
        quantity: 1.5,
        unit: 'minute',
        unit_price: 0.06,
        amount: 0.09,
        direction: 'debit',
        balance_before: 10,
        balance_after: 9.91,
        status: 'succeeded',
        reverses_id: null,
        api_key_id: 3,
        user_id: 1,
        created_at: '2026-01-31T09:30:00.000Z',
      },
    ],
  },
);

export function presentUsage(row: UsageRow) {
  return {
    id: row.id,
    service: row.service,
    operation: row.operation,
    resource_id: row.resourceId,
    quantity: row.quantity,
    unit: row.unit,
    unit_price: nanoToUsd(row.unitPriceNano),
    amount: nanoToUsd(row.amountNano),
    direction: row.direction,
    balance_before: nanoToUsd(row.balanceBeforeNano),
    balance_after: nanoToUsd(row.balanceAfterNano),
    status: row.status,
    reverses_id: row.reversesId,
    api_key_id: row.apiKeyId,
    user_id: row.userId,
    created_at: row.createdAt.toISOString(),
  };
}

/** Export columns in the order of the schema, with money as exact decimals. */
export function usageCells(row: UsageRow): Record<string, CsvCell> {
  return {
    ...presentUsage(row),
    operation: { text: row.operation },
    resource_id: { text: row.resourceId },
    unit_price: nanoToDecimal(row.unitPriceNano),
    amount: nanoToDecimal(row.amountNano),
    balance_before: nanoToDecimal(row.balanceBeforeNano),
    balance_after: nanoToDecimal(row.balanceAfterNano),
  };
}

export const PaymentSchema = Type.Object(
  {
    hash_id: Type.String({ description: 'Id of the payment.' }),
    amount: Type.Number({
      description: 'Amount, in `currency`. Negative if a refund or dispute took back an earlier payment.',
    }),
    currency: Type.String({ description: 'ISO 4217 code. Only USD is credited to the wallet.' }),
    payment_type: PaymentTypeSchema,
    status: PaymentStatusSchema,
    balance_before: usd('Balance before the payment'),
    balance_after: Type.Number({
      description: 'Balance after the payment, in USD. Same as `balance_before` unless the payment succeeded.',
    }),
    description: Type.String({ description: 'Description of the payment.' }),
    created_at: TimeSchema,
  },
  {
    examples: [
      {
        hash_id: 'txn_5f0c6f0e8a544b0e9f0e2d2f3c1b7a10',
        amount: 25,
        currency: 'USD',
        payment_type: 'one_time',
        status: 'succeeded',
        balance_before: 0.5,
        balance_after: 25.5,
        description: 'Topped up by the operator',
        created_at: '2026-01-31T09:30:00.000Z',
      },
    ],
  },
);

export function presentPayment(row: PaymentRow) {
  return {
    hash_id: `txn_${row.id.replaceAll('-', '')}`,
    amount: nanoToUsd(row.amountNano),
    currency: row.currency,
    payment_type: row.paymentType,
    status: row.status,
    balance_before: nanoToUsd(row.balanceBeforeNano),
    balance_after: nanoToUsd(row.balanceAfterNano),
    description: row.description,
    created_at: row.createdAt.toISOString(),
  };
}

export function paymentCells(row: PaymentRow): Record<string, CsvCell> {
  return {
    ...presentPayment(row),
    amount: nanoToDecimal(row.amountNano),
    balance_before: nanoToDecimal(row.balanceBeforeNano),
    balance_after: nanoToDecimal(row.balanceAfterNano),
    description: { text: row.description },
  };
}
