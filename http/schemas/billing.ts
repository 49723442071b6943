import { Type } from 'typebox';
import type { PaymentRow } from '../../storage/queries/payments.ts';
import type { UsageRow } from '../../storage/queries/usage.ts';
import type { CsvCell } from '../csv.ts';
import { nullable, TimeSchema } from './envelope.ts';
import { nanoToDecimal, nanoToUsd } from './money.ts';

const USD = { description: 'USD.' };

export const WalletSchema = Type.Object(
  {
    balance: Type.Number({ description: 'Available and held, in USD.' }),
    held: Type.Number({ description: 'Set aside for calls and other work under way.' }),
    available: Type.Number({ description: 'What can be spent.' }),
    currency: Type.Literal('USD'),
  },
  { examples: [{ balance: 25.5, held: 0.15, available: 25.35, currency: 'USD' }] },
);

export const ServiceSchema = Type.Enum(['tts', 'stt', 'llm', 'memory', 'call', 'number']);
export const UsageStatusSchema = Type.Enum(['succeeded', 'partial', 'failed', 'refunded'], {
  description:
    '`partial` and `failed`: the wallet covered some or nothing of what was owed. `refunded`: a later entry gave it back.',
});
export const PaymentTypeSchema = Type.Enum(['one_time', 'subscription', 'admin_bonus']);
export const PaymentStatusSchema = Type.Enum(['succeeded', 'pending', 'failed']);

export const UsageSchema = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'What `x-billing-tx` named.' }),
    service: ServiceSchema,
    operation: Type.String({ examples: ['click2call', 'rent'] }),
    resource_id: nullable(Type.String({ description: 'What it was for: a call, a number, a memory.' })),
    quantity: Type.Number({ description: 'In units; the amount is exact where this is rounded.' }),
    unit: Type.String({ examples: ['minute', 'character', 'token', 'month', '1000 characters'] }),
    unit_price: Type.Number(USD),
    amount: Type.Number(USD),
    direction: Type.Enum(['debit', 'refund']),
    balance_before: Type.Number(USD),
    balance_after: Type.Number(USD),
    status: UsageStatusSchema,
    reverses_id: nullable(Type.String({ description: 'Of a refund: the entry it gives back.' })),
    api_key_id: nullable(Type.Integer()),
    user_id: nullable(Type.Integer()),
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

/** Columns of the export, in the order of the fields above; money as exact decimals. */
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
    hash_id: Type.String(),
    amount: Type.Number({ description: 'In `currency`.' }),
    currency: Type.String({ description: 'ISO 4217; only USD reaches the wallet.' }),
    payment_type: PaymentTypeSchema,
    status: PaymentStatusSchema,
    balance_before: Type.Number(USD),
    balance_after: Type.Number({ description: 'USD; equal to `balance_before` unless the payment succeeded.' }),
    description: Type.String(),
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
