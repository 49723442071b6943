import { Type } from 'typebox';
import { nanoToUsd } from '../../runtime/money.ts';
import type { CallEntryRow, CallTotals } from '../../storage/queries/call-ledger.ts';
import { nullable, PaginationSchema, TimeSchema } from './envelope.ts';

const usd = (description: string) => Type.Number({ description: `${description}, in USD.` });

const CallEntrySchema = Type.Object({
  id: Type.String({ format: 'uuid', description: 'Id of the entry.' }),
  kind: Type.Enum(['hold', 'hold_grow', 'settle', 'void', 'charge', 'refund'], {
    description:
      '`hold`, `hold_grow`: reserves an amount for the talk. `settle`: charges the talk and releases the rest. `void`: releases everything. `charge`: charges something beside the talk. `refund`: returns a charge.',
  }),
  amount_usd: usd('Amount that was reserved, charged, refunded or, by `void`, released'),
  available_change_usd: usd('Change of the amount that you can spend'),
  held_change_usd: usd('Change of the amount that is reserved'),
  operation: nullable(
    Type.String({
      description: 'Charged operation. Null for `hold`, `hold_grow` and `void`.',
      examples: ['click2call', 'call_legs', 'announce', 'whisper', 'call_play', 'call_transcript'],
    }),
  ),
  description: Type.String({ description: 'Description of the entry. Can be empty.' }),
  operation_key: Type.String({ description: 'Key of the operation. Each key has one entry.' }),
  created_at: TimeSchema,
});

const EXAMPLE_CALL = 'call_00000000-0000-4000-8000-000000000000';

export const CallLedgerSchema = Type.Object(
  {
    call_id: Type.String(),
    charged_usd: usd('Amount charged for the call, minus refunds'),
    held_usd: usd('Amount still reserved for the call'),
    entries: Type.Array(CallEntrySchema, { description: 'Oldest first.' }),
    pagination: PaginationSchema,
  },
  {
    examples: [
      {
        ...{ call_id: EXAMPLE_CALL, charged_usd: 0.09, held_usd: 0 },
        entries: [
          {
            ...{ id: '5f0c6f0e-8a54-4b0e-9f0e-2d2f3c1b7a10', kind: 'settle', amount_usd: 0.09 },
            ...{ available_change_usd: 0.03, held_change_usd: -0.12, operation: 'click2call' },
            ...{ description: `Call ${EXAMPLE_CALL}, 90 s`, operation_key: `call:${EXAMPLE_CALL}:settle` },
            created_at: '2026-01-31T09:32:00.000Z',
          },
        ],
        pagination: { page: 1, limit: 20, total: 1, pages: 1 },
      },
    ],
  },
);

export function presentCallEntry(row: CallEntryRow) {
  const { id, kind, operation, description, operationKey, createdAt } = row;
  return {
    ...{ id, kind, amount_usd: nanoToUsd(amountOf(row)) },
    available_change_usd: nanoToUsd(row.availableNano),
    held_change_usd: nanoToUsd(row.heldNano),
    ...{ operation, description, operation_key: operationKey, created_at: createdAt.toISOString() },
  };
}

export function presentCallTotals({ chargedNano, heldNano }: CallTotals) {
  return { charged_usd: nanoToUsd(chargedNano), held_usd: nanoToUsd(heldNano) };
}

function amountOf({ kind, heldNano, chargedNano }: CallEntryRow): bigint {
  if (kind === 'hold' || kind === 'hold_grow') return heldNano;
  if (kind === 'void') return -heldNano;
  return kind === 'refund' ? -chargedNano : chargedNano;
}
