import { type Static, Type } from 'typebox';
import type { PaymentFilters } from '../../storage/queries/payments.ts';
import type { UsageFilters } from '../../storage/queries/usage.ts';
import { PaymentStatusSchema, PaymentTypeSchema, ServiceSchema, UsageStatusSchema } from './billing.ts';
import { readTime } from './time.ts';

const PERIOD = {
  from: Type.Optional(Type.String({ description: 'Only entries created at or after this time. ISO 8601.' })),
  to: Type.Optional(Type.String({ description: 'Only entries created before this time. ISO 8601.' })),
};

export const PAYMENT_FILTERS = {
  payment_type: Type.Optional(PaymentTypeSchema),
  status: Type.Optional(PaymentStatusSchema),
  ...PERIOD,
};
const PaymentQuery = Type.Object(PAYMENT_FILTERS);

export const USAGE_FILTERS = {
  service: Type.Optional(ServiceSchema),
  status: Type.Optional(UsageStatusSchema),
  api_key_id: Type.Optional(
    Type.Integer({ minimum: 1, maximum: 2_147_483_647, description: 'Only requests made with this API key.' }),
  ),
  ...PERIOD,
};
const UsageQuery = Type.Object(USAGE_FILTERS);

/** @throws TandemError VALIDATION_FAILED for invalid times */
export function paymentFilters(workspaceId: string, query: Static<typeof PaymentQuery>): PaymentFilters {
  return { workspaceId, paymentType: query.payment_type, status: query.status, ...periodOf(query) };
}

/** @throws TandemError VALIDATION_FAILED for invalid times */
export function usageFilters(workspaceId: string, query: Static<typeof UsageQuery>): UsageFilters {
  const { service, status, api_key_id: apiKeyId } = query;
  return { workspaceId, service, status, apiKeyId, ...periodOf(query) };
}

function periodOf({ from, to }: { from?: string; to?: string }): { from?: Date; to?: Date } {
  return { from: readTime('from', from), to: readTime('to', to) };
}
