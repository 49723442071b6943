import { Type } from 'typebox';
import { listCallEntries } from '../../storage/queries/call-ledger.ts';
import type { CallRow } from '../../storage/queries/calls.ts';
import { type Principal, principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { CallParams } from '../schemas/call.ts';
import { CallLedgerSchema, presentCallEntry, presentCallTotals } from '../schemas/call-ledger.ts';
import { PAGE_QUERY, paginationOf, REFUSALS, success, successOf } from '../schemas/envelope.ts';

interface CallLedgerOptions {
  context: HttpContext;
  findCall: (id: string, principal: Principal) => Promise<CallRow>;
}

export function callLedgerRoutes(app: HttpApp, { context, findCall }: CallLedgerOptions): void {
  app.get(
    '/dialer/click2call/:id/ledger',
    {
      config: { access: 'owner' },
      schema: {
        tags: ['billing'],
        operationId: 'getCallLedger',
        summary: 'Get the ledger entries of a call',
        description:
          'Returns every movement of money that the call caused, oldest first: the hold, its growth and release, and the charges for talk, further legs, speech and transcript. Evaluations of the call are not included. Owners only. Tandem extension.',
        params: CallParams,
        querystring: Type.Object(PAGE_QUERY),
        response: { 200: successOf(CallLedgerSchema, 'One page of entries, and their totals.'), ...REFUSALS },
      },
    },
    async (request) => {
      const principal = principalOf(request);
      const { callId } = await findCall(request.params.id, principal);
      const { workspaceId } = principal;
      const { rows, total, totals } = await listCallEntries(context.sql, { workspaceId, callId }, request.query);
      return success({
        call_id: callId,
        ...presentCallTotals(totals),
        entries: rows.map(presentCallEntry),
        pagination: paginationOf(request.query, total),
      });
    },
  );
}
