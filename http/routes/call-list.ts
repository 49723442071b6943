import { Type } from 'typebox';
import { presentCall } from '../../actors/call-view.ts';
import { nanoToDecimal } from '../../runtime/money.ts';
import { type CallPosition, callsAfter } from '../../storage/queries/call-search.ts';
import { type CallRow, listCalls } from '../../storage/queries/calls.ts';
import { principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { type CsvCell, csvRecord } from '../csv.ts';
import { respondWithCsv } from '../csv-response.ts';
import { CALL_FILTERS, CURSOR_QUERY, callFilters, cursorOf, readCursor } from '../schemas/call-filters.ts';
import {
  nullable,
  PAGE_QUERY,
  pageOf,
  paginationOf,
  REFUSALS,
  responseOf,
  shared,
  success,
  successOf,
} from '../schemas/envelope.ts';
import { validationFailed } from '../validation.ts';

const TAGS = ['click-to-call'];
const EXPORT_BATCH = 500;

export function callListRoutes(app: HttpApp, context: HttpContext): void {
  const { sql, numberPlan } = context;

  app.get(
    '/dialer/click2call',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'listCalls',
        summary: 'List calls',
        description:
          'Returns the calls of the workspace, newest first: by `page`, with the total, or by `cursor`, without it. All filters apply together.',
        querystring: Type.Object({ ...PAGE_QUERY, ...CALL_FILTERS, ...CURSOR_QUERY }),
        response: { 200: successOf(ListSchema, 'Some of the calls.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { page, limit, cursor, ...query } = request.query;
      const filters = callFilters(principalOf(request).workspaceId, { query, numberPlan });
      if (cursor === undefined) {
        const { rows, total } = await listCalls(sql, filters, { page, limit });
        return success({ calls: rows.map(presentCall), pagination: paginationOf({ page, limit }, total) });
      }
      if (page !== 1) throw validationFailed([{ path: 'page', message: 'is not allowed with cursor' }]);
      const { rows, next } = await callsAfter(sql, filters, { after: readCursor(cursor), limit });
      return success({ calls: rows.map(presentCall), next_cursor: cursorOf(next) });
    },
  );

  app.get(
    '/dialer/export.csv',
    {
      config: { access: 'member', sends: ['content-disposition'] },
      exposeHeadRoute: false,
      schema: {
        tags: TAGS,
        operationId: 'exportCalls',
        summary: 'Export calls as CSV',
        description:
          'Returns all calls that match the filters, newest first, as CSV (RFC 4180) with a header line and exact decimals. Text that a spreadsheet would run as a formula starts with an apostrophe. Tandem extension.',
        querystring: Type.Object(CALL_FILTERS),
        response: {
          200: responseOf({
            description: 'The CSV file.',
            content: { 'text/csv': { schema: Type.String({ examples: ['call_id,reference_id,direction\r\n'] }) } },
          }),
          ...REFUSALS,
        },
      },
    },
    async (request, reply) => {
      const filters = callFilters(principalOf(request).workspaceId, { query: request.query, numberPlan });
      return respondWithCsv(context, { request, reply }, { name: 'calls', records: csv() });

      /**
       * Reads a batch once the client has taken the last one, so that a slow client occupies neither memory nor a
       * connection.
       */
      async function* csv(): AsyncGenerator<string> {
        yield csvRecord(COLUMNS);
        let after: CallPosition | null = null;
        do {
          const batch: { rows: CallRow[]; next: CallPosition | null } = await callsAfter(sql, filters, {
            after,
            limit: EXPORT_BATCH,
          });
          if (batch.rows.length > 0) yield batch.rows.map((row) => csvRecord(cellsOf(row))).join('');
          after = batch.next;
        } while (after !== null);
      }
    },
  );
}

const ListSchema = Type.Object({
  calls: Type.Array(shared('Call')),
  pagination: Type.Optional(pageOf('calls', shared('Call')).properties.pagination!),
  next_cursor: Type.Optional(
    nullable(
      Type.String({
        description: 'Cursor of the next calls; null at the end. Only in a response to a request with `cursor`.',
        examples: ['MTc2OTg1MTgwMDEyMDAwMC9jYWxsXzE'],
      }),
    ),
  ),
});

const CELLS: Readonly<Record<string, (row: CallRow) => CsvCell>> = {
  call_id: (row) => row.callId,
  reference_id: (row) => ({ text: row.referenceId }),
  direction: (row) => row.direction,
  state: (row) => row.state,
  terminal_event: (row) => row.terminalEvent,
  hangup_cause: (row) => ({ text: row.hangupCause }),
  error_detail: (row) => ({ text: row.errorDetail }),
  agent_number: (row) => numberCell(row.agentNumber),
  customer_number: (row) => numberCell(row.customerNumber),
  did: (row) => numberCell(row.did),
  outbound_trunk_id: (row) => row.trunkId,
  created_at: (row) => row.createdAt.toISOString(),
  answer_time: (row) => row.answerTime?.toISOString() ?? null,
  end_time: (row) => row.endTime?.toISOString() ?? null,
  talk_seconds: (row) => row.talkSeconds,
  total_seconds: (row) => row.totalSeconds,
  cost_usd: (row) => moneyCell(row.costNano),
  legs_cost_usd: (row) => moneyCell(row.legsCostNano),
  speech_cost_usd: (row) => moneyCell(row.speechCostNano),
  billing_status: (row) => row.billingStatus,
  agent_mos: (row) => row.quality?.agent?.mos ?? null,
  customer_mos: (row) => row.quality?.customer?.mos ?? null,
  recording_available: (row) => String(row.recordingStatus === 'uploaded'),
  placed_via: (row) => row.placedVia,
  api_key_name: (row) => ({ text: row.apiKeyName }),
  created_by_user_id: (row) => row.createdByUserId,
  metadata: (row) => ({ text: row.metadata && JSON.stringify(row.metadata) }),
};
const COLUMNS = Object.keys(CELLS);

function cellsOf(row: CallRow): CsvCell[] {
  return COLUMNS.map((column) => CELLS[column]!(row));
}

/** Spreadsheets read a plus sign with digits as a number, not a formula. */
function numberCell(number: string | null): CsvCell {
  return number !== null && /^\+\d+$/.test(number) ? number : { text: number };
}

function moneyCell(nano: bigint | null): CsvCell {
  return nano === null ? null : nanoToDecimal(nano);
}
