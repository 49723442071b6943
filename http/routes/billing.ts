import { Type } from 'typebox';
import { nanoToUsd } from '../../runtime/money.ts';
import { walletOf } from '../../storage/queries/billing.ts';
import { listPayments } from '../../storage/queries/payments.ts';
import { listUsage } from '../../storage/queries/usage.ts';
import { principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { PaymentSchema, presentPayment, presentUsage, UsageSchema, WalletSchema } from '../schemas/billing.ts';
import { PAYMENT_FILTERS, paymentFilters, USAGE_FILTERS, usageFilters } from '../schemas/billing-filters.ts';
import { PAGE_QUERY, pageOf, paginationOf, REFUSALS, success, successOf } from '../schemas/envelope.ts';
import { billingExportRoute } from './billing-export.ts';
import { billingSummaryRoute } from './billing-summary.ts';

const TAGS = ['billing'];

export function billingRoutes(app: HttpApp, context: HttpContext): void {
  const { sql } = context;

  app.get(
    '/billing/wallet',
    {
      config: { access: 'owner' },
      schema: {
        tags: TAGS,
        operationId: 'getWallet',
        summary: 'Get the wallet',
        description: 'Returns the balance of the workspace, and the part of it that is reserved.',
        response: { 200: successOf(WalletSchema, 'The wallet.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { balanceNano, heldNano, availableNano } = await walletOf(sql, principalOf(request).workspaceId);
      return success({
        balance: nanoToUsd(balanceNano),
        held: nanoToUsd(heldNano),
        available: nanoToUsd(availableNano),
        currency: 'USD',
      });
    },
  );

  app.get(
    '/billing/transactions',
    {
      config: { access: 'owner' },
      schema: {
        tags: TAGS,
        operationId: 'listTransactions',
        summary: 'List payments',
        description: 'Returns wallet top-ups and subscription payments, newest first.',
        querystring: Type.Object({ ...PAGE_QUERY, ...PAYMENT_FILTERS }),
        response: { 200: successOf(TransactionsSchema, 'One page of payments.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { page, limit } = request.query;
      const filters = paymentFilters(principalOf(request).workspaceId, request.query);
      const { rows, total } = await listPayments(sql, filters, { page, limit });
      const pagination = {
        current_page: page,
        per_page: limit,
        total_records: total,
        total_pages: Math.ceil(total / limit),
      };
      return success({ transactions: rows.map(presentPayment), pagination });
    },
  );

  app.get(
    '/billing/usage-logs',
    {
      config: { access: 'owner' },
      schema: {
        tags: TAGS,
        operationId: 'listUsageLogs',
        summary: 'List usage',
        description: 'Returns every charge and refund, newest first.',
        querystring: Type.Object({ ...PAGE_QUERY, ...USAGE_FILTERS }),
        response: { 200: successOf(pageOf('entries', UsageSchema), 'One page of entries.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { page, limit } = request.query;
      const filters = usageFilters(principalOf(request).workspaceId, request.query);
      const { rows, total } = await listUsage(sql, filters, { page, limit });
      return success({ entries: rows.map(presentUsage), pagination: paginationOf({ page, limit }, total) });
    },
  );

  billingSummaryRoute(app, context);
  billingExportRoute(app, context);
}

const TransactionsSchema = Type.Object({
  transactions: Type.Array(PaymentSchema),
  pagination: Type.Object(
    {
      current_page: Type.Integer({ description: 'Page number.' }),
      per_page: Type.Integer({ description: 'Page size.' }),
      total_records: Type.Integer({ description: 'Number of payments on all pages.' }),
      total_pages: Type.Integer({ description: 'Number of pages.' }),
    },
    { examples: [{ current_page: 1, per_page: 20, total_records: 1, total_pages: 1 }] },
  ),
});
