import { randomUUID } from 'node:crypto';
import { Type } from 'typebox';
import { TandemError } from '../../machines/errors.ts';
import { within } from '../../runtime/waiting.ts';
import { inTransaction } from '../../storage/database.ts';
import { type Erased, eraseCall } from '../../storage/queries/call-erasure.ts';
import type { CallRow } from '../../storage/queries/calls.ts';
import { createErasure, type ErasureRow, getErasure, lastDigits } from '../../storage/queries/erasures.ts';
import { type Principal, principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { recordAction } from '../recorded-action.ts';
import { CallParams } from '../schemas/call.ts';
import { nullable, REFUSALS, success, successOf, TimeSchema } from '../schemas/envelope.ts';
import { normaliseCallable, normaliseE164 } from '../schemas/phone-number.ts';
import { validationFailed } from '../validation.ts';

const TAGS = ['privacy'];
/** Small erasures complete within the request. */
const PATIENCE_MS = 2_000;

interface CallDeletionOptions {
  context: HttpContext;
  findCall: (id: string, principal: Principal) => Promise<CallRow>;
}

export function callDeletionRoutes(app: HttpApp, { context, findCall }: CallDeletionOptions): void {
  const { sql, eraser, now } = context;

  app.delete(
    '/dialer/click2call/:id',
    {
      config: { access: 'admin' },
      schema: {
        tags: TAGS,
        operationId: 'deleteCall',
        summary: 'Delete a call',
        description:
          'Deletes a finished call for good: its events, metadata, transcript, recording, SIP messages, media quality, callbacks, webhook deliveries and evaluations. A delivery that is still pending is not sent any more. Its ledger entries and usage logs stay, so that balances still add up; they contain the call_id, which leads to nothing any more. Its reference_id can be used again. Fails with CALL_IN_USE while the call is live, or its recording, transcript or evaluation is not finished. Written to the audit log. Tandem extension.',
        params: CallParams,
        response: { 200: successOf(DeletedCallSchema, 'The call is deleted.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { callId } = await findCall(request.params.id, principalOf(request));
      const at = now();
      const deleted = await inTransaction(sql, async (tx) => {
        const erased = await eraseCall(tx, { callId, now: at });
        if (erased === null) throw new TandemError('CALL_NOT_FOUND', 'No call in this workspace has this id.');
        const target = { type: 'call', id: callId };
        const details = { deleted: presentErased(erased) };
        await recordAction(tx, request, { action: 'call.deleted', target, details, now: at });
        return erased;
      });
      await workForAWhile(context, eraser.work());
      return success({ call_id: callId, deleted: presentErased(deleted) });
    },
  );
}

export function privacyRoutes(app: HttpApp, context: HttpContext): void {
  const { sql, eraser, numberPlan, now } = context;

  app.post(
    '/privacy/erasures',
    {
      config: { access: 'admin' },
      schema: {
        tags: TAGS,
        operationId: 'createErasure',
        summary: 'Erase a phone number',
        description:
          'Deletes every call of the workspace with this number as agent, customer or further party, as `DELETE /dialer/click2call/{id}` does, and every delivery that names the number. Calls that are live are deleted once they have ended, so the erasure can stay `running`: get it until it is `completed`. Calls that are placed later are not deleted. Not deleted are ledger entries, the do-not-call list, the audit log, and memories, chats and rubrics, which can name the number in any form. Written to the audit log with the last four digits. Tandem extension.',
        body: Type.Object(
          {
            e164: Type.String({ description: 'Number in E.164 format, or in a notation that a placement accepts.' }),
          },
          { additionalProperties: false, examples: [{ e164: '+919812345678' }] },
        ),
        response: { 202: successOf(ErasureSchema, 'The erasure, which may be completed.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { workspaceId } = principalOf(request);
      const { e164: text } = request.body;
      const e164 = normaliseCallable(text, numberPlan) ?? normaliseE164(text);
      if (e164 === null) {
        throw validationFailed([{ path: 'e164', message: 'must be a phone number, such as +919812345678' }]);
      }
      const at = now();
      const id = randomUUID();
      await inTransaction(sql, async (tx) => {
        await createErasure(tx, { id, workspaceId, e164, now: at });
        const target = { type: 'erasure', id };
        const details = { last4: lastDigits(e164) };
        await recordAction(tx, request, { action: 'erasure.requested', target, details, now: at });
      });
      await workForAWhile(context, eraser.work());
      return reply.code(202).send(success(present((await getErasure(sql, { id, workspaceId }))!)));
    },
  );

  app.get(
    '/privacy/erasures/:id',
    {
      config: { access: 'admin' },
      schema: {
        tags: TAGS,
        operationId: 'getErasure',
        summary: 'Get an erasure',
        description: 'Returns the status of an erasure, and what it has deleted so far. Tandem extension.',
        params: Type.Object({ id: Type.String({ description: 'Erasure id.' }) }),
        response: { 200: successOf(ErasureSchema, 'The erasure.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { workspaceId } = principalOf(request);
      const erasure = await getErasure(sql, { id: request.params.id, workspaceId });
      if (erasure === null) throw new TandemError('ERASURE_NOT_FOUND', 'No erasure in this workspace has this id.');
      return success(present(erasure));
    },
  );
}

const Count = (what: string) => Type.Integer({ description: `Deleted ${what}.` });
const ErasedSchema = Type.Object({
  calls: Count('calls'),
  events: Count('events of calls'),
  recordings: Count('recordings. Their files are deleted within minutes, on the node that has them'),
  transcripts: Count('transcripts of calls'),
  sip_messages: Count('SIP messages'),
  deliveries: Count('callbacks and webhook deliveries'),
  evaluations: Count('evaluations by a judge'),
});
const ERASED_EXAMPLE = {
  ...{ calls: 1, events: 9, recordings: 1, transcripts: 1, sip_messages: 14, deliveries: 1, evaluations: 0 },
};
const DeletedCallSchema = Type.Object(
  { call_id: Type.String(), deleted: ErasedSchema },
  { examples: [{ call_id: 'call_00000000-0000-4000-8000-000000000000', deleted: ERASED_EXAMPLE }] },
);
const ErasureSchema = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    last4: Type.String({ description: 'Last four digits of the number.' }),
    status: Type.Enum(['running', 'completed'], { description: '`running` while calls with the number are left.' }),
    deleted: ErasedSchema,
    created_at: TimeSchema,
    completed_at: nullable(TimeSchema),
  },
  {
    examples: [
      {
        id: '00000000-0000-4000-8000-000000000000',
        last4: '5678',
        status: 'completed',
        deleted: ERASED_EXAMPLE,
        created_at: '2026-01-31T09:30:00.000Z',
        completed_at: '2026-01-31T09:30:00.240Z',
      },
    ],
  },
);

/** Responds even if the work fails, because the request is stored and the next round repeats it. */
async function workForAWhile({ logger }: HttpContext, work: Promise<void>): Promise<void> {
  const logged = work.catch((error) => logger.warn({ err: error }, 'erasing failed, and will be repeated'));
  await within(logged, { ms: PATIENCE_MS });
}

function present({ id, last4, status, deleted, createdAt, completedAt }: ErasureRow) {
  return {
    ...{ id, last4, status, deleted: presentErased(deleted) },
    created_at: createdAt.toISOString(),
    completed_at: completedAt?.toISOString() ?? null,
  };
}

function presentErased({ sipMessages, ...erased }: Erased) {
  return { ...erased, sip_messages: sipMessages };
}
