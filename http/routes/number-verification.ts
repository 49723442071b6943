import { Type } from 'typebox';
import { TandemError } from '../../machines/errors.ts';
import { getVerification, type NumberVerification } from '../../storage/queries/number-verifications.ts';
import { principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { recordAction } from '../recorded-action.ts';
import { nullable, REFUSALS, success, successOf, TimeSchema } from '../schemas/envelope.ts';
import { E164Schema, requireVerifiable } from '../schemas/phone-number.ts';

const TAGS = ['numbers'];

export function numberVerificationRoutes(app: HttpApp, context: HttpContext): void {
  const { sql, now, numberVerifier, numberPlan } = context;

  app.post(
    '/dialer/numbers/verifications',
    {
      config: { access: 'writer' },
      schema: {
        tags: TAGS,
        operationId: 'verifyNumber',
        summary: 'Verify a number by a call',
        description:
          'Verifies that a trunk of the workspace receives the calls to a number it lists in `unverified_numbers`. Tandem calls the number over a trunk of the operator and presses a code of eight digits. The number is verified when the call comes back over your trunk with this code; Tandem answers it itself, so point the number at this server before. Takes up to a minute: poll the verification. Costs one minute of a call, and is limited to 3 a day for a number and 20 for a workspace. If a verification of the number is under way, that one is returned. Tandem extension.',
        body: Type.Object(
          {
            e164: E164Schema,
            trunk_id: Type.String({
              description: 'Trunk that lists the number.',
              examples: ['7d3c0f4e-9a51-4b0c-8f21-3f6d2f0f6a11'],
            }),
          },
          { additionalProperties: false },
        ),
        response: { 202: successOf(VerificationSchema, 'The number is being called.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { workspaceId, apiKeyId, userId } = principalOf(request);
      const e164 = requireVerifiable('e164', request.body.e164, numberPlan);
      // Compared with stored ids, which have no capitals.
      const trunkId = request.body.trunk_id.toLowerCase();
      const verification = await numberVerifier.start({ workspaceId, apiKeyId, userId, e164, trunkId }, async (tx) => {
        const target = { type: 'number', id: e164 } as const;
        const details = { trunk_id: trunkId };
        await recordAction(tx, request, { action: 'number.verification_started', target, details, now: now() });
      });
      return reply.code(202).send(success(presentVerification(verification)));
    },
  );

  app.get(
    '/dialer/numbers/verifications/:id',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'getNumberVerification',
        summary: 'Get a verification',
        description: 'Returns how the verification of a number went. Tandem extension.',
        params: Type.Object({ id: Type.String({ description: 'Verification id.' }) }),
        response: { 200: successOf(VerificationSchema, 'The verification.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { workspaceId } = principalOf(request);
      const verification = await getVerification(sql, { id: request.params.id, workspaceId, now: now() });
      if (verification === null) throw new TandemError('VERIFICATION_NOT_FOUND', 'Verification not found.');
      return success(presentVerification(verification));
    },
  );
}

const VerificationSchema = Type.Object({
  id: Type.String({ format: 'uuid' }),
  e164: E164Schema,
  outbound_trunk_id: Type.String({ format: 'uuid', description: 'Trunk that lists the number.' }),
  status: Type.Enum(['calling', 'verified', 'failed'], {
    description: '`verified`: the workspace can rent the number, and other trunks can no longer list it.',
  }),
  failure: nullable(
    Type.Enum(['not_answered', 'busy', 'refused', 'code_not_heard', 'interrupted'], {
      description:
        'Null unless failed. `code_not_heard`: the call was answered, but no call over the trunk brought the code. `interrupted`: the server stopped, or lost the call.',
    }),
  ),
  started_at: TimeSchema,
  ended_at: nullable(TimeSchema),
});

function presentVerification(row: NumberVerification) {
  return {
    id: row.id,
    e164: row.e164,
    outbound_trunk_id: row.trunkId,
    status: row.status,
    failure: row.failure,
    started_at: row.createdAt.toISOString(),
    ended_at: row.endedAt?.toISOString() ?? null,
  };
}
