import { Type } from 'typebox';
import { TandemError } from '../../machines/errors.ts';
import { inTransaction } from '../../storage/database.ts';
import { addToDoNotCall, listDoNotCall, onDoNotCall, removeFromDoNotCall } from '../../storage/queries/do-not-call.ts';
import { principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { recordAction } from '../recorded-action.ts';
import { PAGE_QUERY, pageOf, paginationOf, REFUSALS, success, successOf, TimeSchema } from '../schemas/envelope.ts';
import { E164Schema, type NumberPlan, normaliseCallable, normaliseE164 } from '../schemas/phone-number.ts';
import { validationFailed } from '../validation.ts';

const TAGS = ['calling rules'];

const NumbersBody = Type.Object(
  {
    numbers: Type.Array(
      Type.String({ description: 'Number in E.164 format, or in a notation that a placement accepts.' }),
      { minItems: 1, maxItems: 1000, description: 'Up to 1000 numbers.' },
    ),
  },
  { additionalProperties: false, examples: [{ numbers: ['+919812345678', '98765 43210'] }] },
);

/** Numbers that a workspace must not call, except for its agents and supervisors. */
export function doNotCallRoutes(app: HttpApp, { sql, numberPlan, now }: HttpContext): void {
  app.get(
    '/dialer/do-not-call',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'listDoNotCall',
        summary: 'List the do-not-call list',
        description:
          'Returns the numbers on the do-not-call list of the workspace, in ascending order. Tandem extension.',
        querystring: Type.Object(PAGE_QUERY),
        response: { 200: successOf(pageOf('numbers', ListedSchema), 'One page of numbers.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { workspaceId } = principalOf(request);
      const { rows, total } = await listDoNotCall(sql, { workspaceId }, request.query);
      const numbers = rows.map(({ e164, createdAt }) => ({ e164, created_at: createdAt.toISOString() }));
      return success({ numbers, pagination: paginationOf(request.query, total) });
    },
  );

  app.post(
    '/dialer/do-not-call',
    {
      config: { access: 'admin' },
      schema: {
        tags: TAGS,
        operationId: 'addToDoNotCall',
        summary: 'Add numbers to the do-not-call list',
        description:
          'From now on, calls to these customers and adding them to calls are rejected with DO_NOT_CALL. Numbers that are listed already stay listed. Admins and owners only. Written to the audit log. Tandem extension.',
        body: NumbersBody,
        response: { 200: successOf(AddedSchema, 'The numbers are on the list.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { workspaceId } = principalOf(request);
      const numbers = readNumbers(request.body.numbers, numberPlan);
      const at = now();
      const added = await inTransaction(sql, async (tx) => {
        const count = await addToDoNotCall(tx, { workspaceId, numbers, now: at });
        const target = { type: 'workspace', id: workspaceId };
        await recordAction(tx, request, { action: 'do_not_call.added', target, details: { added: count }, now: at });
        return count;
      });
      return success({ added });
    },
  );

  app.post(
    '/dialer/do-not-call/check',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'checkDoNotCall',
        summary: 'Check numbers against the do-not-call list',
        description: 'Returns those of the numbers that are on the list, in E.164 format. Tandem extension.',
        body: NumbersBody,
        response: { 200: successOf(CheckedSchema, 'The numbers that must not be called.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { workspaceId } = principalOf(request);
      const numbers = readNumbers(request.body.numbers, numberPlan);
      return success({ listed: await onDoNotCall(sql, { workspaceId, numbers }) });
    },
  );

  app.delete(
    '/dialer/do-not-call/:e164',
    {
      config: { access: 'admin' },
      schema: {
        tags: TAGS,
        operationId: 'removeFromDoNotCall',
        summary: 'Remove a number from the do-not-call list',
        description:
          'Allows calls to the number again. Admins and owners only. Written to the audit log. Tandem extension.',
        params: Type.Object({
          e164: Type.String({ description: 'Number in E.164 format, with the plus sign encoded as %2B.' }),
        }),
        response: { 200: successOf(RemovedSchema, 'The number is not on the list any more.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { workspaceId } = principalOf(request);
      const e164 = normaliseE164(request.params.e164);
      if (e164 === null) throw notListed();
      const at = now();
      await inTransaction(sql, async (tx) => {
        if (!(await removeFromDoNotCall(tx, { workspaceId, e164 }))) throw notListed();
        const target = { type: 'number', id: e164 };
        await recordAction(tx, request, { action: 'do_not_call.removed', target, now: at });
      });
      return success({ e164, removed: true });
    },
  );
}

const ListedSchema = Type.Object(
  { e164: E164Schema, created_at: { ...TimeSchema, description: 'When the number was added.' } },
  { examples: [{ e164: '+919812345678', created_at: '2026-01-31T09:30:00.000Z' }] },
);
const AddedSchema = Type.Object(
  { added: Type.Integer({ description: 'Numbers that were not on the list before.' }) },
  { examples: [{ added: 2 }] },
);
const CheckedSchema = Type.Object({ listed: Type.Array(E164Schema) }, { examples: [{ listed: ['+919812345678'] }] });
const RemovedSchema = Type.Object(
  { e164: E164Schema, removed: Type.Literal(true) },
  { examples: [{ e164: '+919812345678', removed: true }] },
);

/** @throws TandemError VALIDATION_FAILED with the position of each invalid number, but not the number */
function readNumbers(texts: readonly string[], plan: NumberPlan): string[] {
  const numbers = texts.map((text) => normaliseCallable(text, plan) ?? normaliseE164(text));
  const wrong = numbers.flatMap((number, index) => (number === null ? [index] : [])).slice(0, 20);
  if (wrong.length === 0) return numbers as string[];
  throw validationFailed(
    wrong.map((index) => ({ path: `numbers.${index}`, message: 'must be a phone number, such as +919812345678' })),
  );
}

function notListed(): TandemError {
  return new TandemError('NOT_ON_DO_NOT_CALL', 'The do-not-call list of the workspace does not have this number.');
}
