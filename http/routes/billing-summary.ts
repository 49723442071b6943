import { Type } from 'typebox';
import { nanoToUsd } from '../../runtime/money.ts';
import { summarizeUsage, type UsageGroup } from '../../storage/queries/usage-summary.ts';
import { principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { nullable, REFUSALS, success, successOf, TimeSchema } from '../schemas/envelope.ts';
import { periodStart, readTime } from '../schemas/time.ts';
import { validationFailed } from '../validation.ts';

const DAY_MS = 86_400_000;
const DEFAULT_DAYS = 30;
/** Limits the days in a response. */
const MAX_DAYS = 400;

export function billingSummaryRoute(app: HttpApp, { sql, now }: HttpContext): void {
  app.get(
    '/billing/usage-summary',
    {
      config: { access: 'owner' },
      schema: {
        tags: ['billing'],
        operationId: 'summarizeUsage',
        summary: 'Summarize usage',
        description:
          'Returns the spend and the number of charges in a period of up to 400 days, by product, by API key or by day in UTC. A refund counts on the day of the refund. Products and API keys come highest spend first, and only if they were used; days come in order, each day of the period. Tandem extension.',
        querystring: Type.Object({
          from: Type.Optional(
            Type.String({ description: 'Start of the period. ISO 8601. Default: 30 days before `to`.' }),
          ),
          to: Type.Optional(Type.String({ description: 'End of the period, exclusive. ISO 8601. Default: now.' })),
          group_by: Type.Enum(['product', 'api_key', 'day'], { default: 'product', description: 'How to group.' }),
        }),
        response: { 200: successOf(SummarySchema, 'The sums.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { group_by: groupBy } = request.query;
      const { from, to } = periodOf(request.query, now());
      const { workspaceId } = principalOf(request);
      const used = await summarizeUsage(sql, { workspaceId, from, to, groupBy });
      const groups = groupBy === 'day' ? everyDay(used, { from, to }) : used;
      return success({
        ...{ from: from.toISOString(), to: to.toISOString(), group_by: groupBy, currency: 'USD' },
        total: sumsOf(used),
        groups: groups.map((group) => ({ key: group.key, name: group.name, ...sumsOf([group]) })),
      });
    },
  );
}

/** @throws TandemError VALIDATION_FAILED */
function periodOf(query: { from?: string; to?: string }, now: Date): { from: Date; to: Date } {
  const to = readTime('to', query.to) ?? now;
  const from = readTime('from', query.from) ?? periodStart(to, DEFAULT_DAYS * DAY_MS);
  const days = (to.getTime() - from.getTime()) / DAY_MS;
  if (days <= 0) throw validationFailed([{ path: 'from', message: 'must be before to' }]);
  if (days > MAX_DAYS) {
    throw validationFailed([{ path: 'from', message: `must be at most ${MAX_DAYS} days before to` }]);
  }
  return { from, to };
}

/** Adds days without entries, so that charts have no gaps. */
function everyDay(used: UsageGroup[], { from, to }: { from: Date; to: Date }): UsageGroup[] {
  const byDay = new Map(used.map((group) => [group.key, group]));
  const days: UsageGroup[] = [];
  const first = Math.floor(from.getTime() / DAY_MS) * DAY_MS;
  for (let at = first; at < to.getTime(); at += DAY_MS) {
    const key = new Date(at).toISOString().slice(0, 10);
    days.push(byDay.get(key) ?? { key, name: null, count: 0, chargedNano: 0n, refundedNano: 0n });
  }
  return days;
}

function sumsOf(groups: UsageGroup[]) {
  const charged = groups.reduce((sum, { chargedNano }) => sum + chargedNano, 0n);
  const refunded = groups.reduce((sum, { refundedNano }) => sum + refundedNano, 0n);
  const count = groups.reduce((sum, group) => sum + group.count, 0);
  return {
    amount: nanoToUsd(charged - refunded),
    charged: nanoToUsd(charged),
    refunded: nanoToUsd(refunded),
    count,
  };
}

const SUMS = {
  amount: Type.Number({ description: 'Charges minus refunds, in USD.' }),
  charged: Type.Number({ description: 'Charges, in USD.' }),
  refunded: Type.Number({ description: 'Refunds, in USD.' }),
  count: Type.Integer({ description: 'Number of charges.' }),
};

const SummarySchema = Type.Object(
  {
    from: TimeSchema,
    to: TimeSchema,
    group_by: Type.Enum(['product', 'api_key', 'day']),
    currency: Type.Literal('USD'),
    total: Type.Object(SUMS, { description: 'Sums of the whole period.' }),
    groups: Type.Array(
      Type.Object({
        key: nullable(
          Type.String({
            description:
              'The service as in the usage log, the id of the API key, or the day. Null: requests without an API key, such as those of the console.',
          }),
        ),
        name: nullable(Type.String({ description: 'Name of the API key.' })),
        ...SUMS,
      }),
    ),
  },
  {
    examples: [
      {
        from: '2026-01-01T00:00:00.000Z',
        to: '2026-01-31T00:00:00.000Z',
        group_by: 'product',
        currency: 'USD',
        total: { amount: 1.25, charged: 1.3, refunded: 0.05, count: 42 },
        groups: [{ key: 'call', name: null, amount: 1.25, charged: 1.3, refunded: 0.05, count: 42 }],
      },
    ],
  },
);
