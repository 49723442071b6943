import { Type } from 'typebox';
import { paymentsAfter } from '../../storage/queries/payments.ts';
import { usageAfter } from '../../storage/queries/usage.ts';
import { principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { type CsvCell, csvRecord } from '../csv.ts';
import { respondWithCsv } from '../csv-response.ts';
import { PaymentSchema, paymentCells, UsageSchema, usageCells } from '../schemas/billing.ts';
import { PAYMENT_FILTERS, paymentFilters, USAGE_FILTERS, usageFilters } from '../schemas/billing-filters.ts';
import { REFUSALS, responseOf } from '../schemas/envelope.ts';
import { validationFailed } from '../validation.ts';

const BATCH = 500;

/** Reads the list in batches, oldest first. */
export function billingExportRoute(app: HttpApp, context: HttpContext): void {
  const { sql } = context;

  app.get(
    '/billing/export.csv',
    {
      config: { access: 'owner', sends: ['content-disposition'] },
      exposeHeadRoute: false,
      schema: {
        tags: ['billing'],
        operationId: 'exportBilling',
        summary: 'Export usage or payments as CSV',
        description:
          'Returns the whole list, oldest first, as CSV (RFC 4180) with a header line and exact decimals. Text that a spreadsheet would run as a formula starts with an apostrophe.',
        querystring: ExportQuery,
        response: {
          200: responseOf({
            description: 'The CSV file.',
            content: { 'text/csv': { schema: Type.String({ examples: ['id,service,operation\r\n'] }) } },
          }),
          ...REFUSALS,
        },
      },
    },
    async (request, reply) => {
      const { workspaceId } = principalOf(request);
      const { type, status, payment_type, service, api_key_id, ...period } = request.query;
      const table = type === 'usage' ? usageTable() : paymentTable();
      return respondWithCsv(context, { request, reply }, { name: type, records: csvOf(table) });

      function usageTable(): Table {
        refuseFilters({ payment_type }, 'transactions');
        const filters = usageFilters(workspaceId, {
          ...period,
          service,
          api_key_id,
          status: knownStatus('usage', status),
        });
        return tableOf(Object.keys(UsageSchema.properties), usageCells, (position) =>
          usageAfter(sql, filters, { position, limit: BATCH }),
        );
      }

      function paymentTable(): Table {
        refuseFilters({ service, api_key_id }, 'usage');
        const filters = paymentFilters(workspaceId, {
          ...period,
          payment_type,
          status: knownStatus('transactions', status),
        });
        return tableOf(Object.keys(PaymentSchema.properties), paymentCells, (position) =>
          paymentsAfter(sql, filters, { position, limit: BATCH }),
        );
      }
    },
  );
}

const STATUSES = {
  usage: ['succeeded', 'partial', 'failed', 'refunded'],
  transactions: ['succeeded', 'pending', 'failed'],
} as const;

const ExportQuery = Type.Object({
  type: Type.Enum(['usage', 'transactions'], { default: 'usage', description: 'List to export.' }),
  ...PAYMENT_FILTERS,
  ...USAGE_FILTERS,
  status: Type.Optional(
    Type.Enum([...new Set([...STATUSES.usage, ...STATUSES.transactions])], {
      description: 'Only entries with this status of the exported list.',
    }),
  ),
});

function knownStatus<Type extends keyof typeof STATUSES>(
  type: Type,
  status: string | undefined,
): (typeof STATUSES)[Type][number] | undefined {
  if (status === undefined) return undefined;
  const known = STATUSES[type].find((one) => one === status);
  if (known === undefined) {
    throw validationFailed([{ path: 'status', message: `must be one of ${STATUSES[type].join(', ')}` }]);
  }
  return known;
}

/** Rejects filters of the other list. Ignoring them would export more than requested. */
function refuseFilters(filters: Record<string, unknown>, type: keyof typeof STATUSES): void {
  const path = Object.keys(filters).find((name) => filters[name] !== undefined);
  if (path !== undefined) throw validationFailed([{ path, message: `is only allowed with type=${type}` }]);
}

interface Table {
  columns: string[];
  /** Reads records after a position. `next` is the position to continue from; null at the end. */
  read: (position: bigint) => Promise<{ records: string[]; next: bigint | null }>;
}

function tableOf<Row extends { position: bigint }>(
  columns: string[],
  cellsOf: (row: Row) => Record<string, CsvCell>,
  rowsAfter: (position: bigint) => Promise<Row[]>,
): Table {
  return {
    columns,
    async read(position) {
      const rows = await rowsAfter(position);
      const records = rows.map((row) => {
        const cells = cellsOf(row);
        return csvRecord(columns.map((column) => cells[column] ?? null));
      });
      return { records, next: rows.length < BATCH ? null : rows.at(-1)!.position };
    },
  };
}

/**
 * Reads a batch once the client has taken the last one, so that a slow client occupies neither memory nor a connection.
 */
async function* csvOf({ columns, read }: Table): AsyncGenerator<string> {
  yield csvRecord(columns);
  let position: bigint | null = 0n;
  while (position !== null) {
    const batch: { records: string[]; next: bigint | null } = await read(position);
    if (batch.records.length > 0) yield batch.records.join('');
    position = batch.next;
  }
}
