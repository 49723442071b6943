import { type Static, Type } from 'typebox';
import type { CallControl } from '../../actors/dialer.ts';
import type { LegEndpoint } from '../../machines/events.ts';
import type { CallRow } from '../../storage/queries/calls.ts';
import { type Principal, principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { CallNameSchema, CallParams, LEG_EXAMPLE, LegObjectSchema } from '../schemas/call.ts';
import { EndpointSchema, readEndpoint } from '../schemas/endpoint.ts';
import { REFUSALS, shared, success, successOf } from '../schemas/envelope.ts';
import { validationFailed } from '../validation.ts';
import { legInPlace, legOf } from './call-control.ts';

const TAGS = ['click-to-call'];
const CallData = Type.Object({ call: shared('Call') });

const TransferBody = Type.Object(
  {
    endpoint: Type.Optional(EndpointSchema),
    to: Type.Optional({ ...EndpointSchema, description: 'Another name of `endpoint`.' }),
    leg: Type.Optional(
      Type.String({
        default: 'agent',
        description: 'Leg that is replaced: `agent`, `customer`, or the leg_id of a leg that took such a place before.',
      }),
    ),
    mode: Type.Optional(
      Type.Enum(['blind', 'attended'], {
        default: 'blind',
        description:
          '`blind`: the leg is replaced as soon as the target answers. `attended`: it talks with the target first, until the transfer is completed or cancelled.',
      }),
    ),
  },
  {
    additionalProperties: false,
    examples: [{ endpoint: { type: 'phone', number: '+919800000003' }, leg: 'agent', mode: 'attended' }],
  },
);

const TRANSFER_STATES = ['consulting', 'completed', 'cancelled'] as const;

/** Schema of a transfer. Its example is in that state. */
function transferSchema(state: (typeof TRANSFER_STATES)[number]) {
  return Type.Object(
    {
      id: Type.String({ description: 'Id of the transfer: the leg_id of its target.' }),
      state: Type.Enum([...TRANSFER_STATES], {
        description: '`consulting`: in progress. The events of the call report its end.',
      }),
    },
    { examples: [{ id: LEG_EXAMPLE.leg_id, state }] },
  );
}

const TransferParams = Type.Object({
  id: CallNameSchema,
  transfer_id: Type.String({ description: 'Id of the transfer.' }),
});

interface CallTransferOptions {
  context: HttpContext;
  findCall: (id: string, principal: Principal) => Promise<CallRow>;
}

export function callTransferRoutes(app: HttpApp, { context, findCall }: CallTransferOptions): void {
  const { dialer, numberPlan } = context;

  app.post(
    '/dialer/click2call/:id/transfer',
    {
      config: { access: 'writer' },
      schema: {
        tags: TAGS,
        operationId: 'transferCall',
        summary: 'Transfer a call',
        description:
          'Dials a target that takes the place of one of the two parties: a phone over the trunk of the call, or the browser of a user. The response arrives when the target is being dialed. Meanwhile the leg that is replaced hears ringing, and the other party hears music. If the target does not answer, both talk again. The call goes on under its id, with its recording and transcript; requests that name the role of the replaced leg then control the target. Adds the events `transfer.started`, and `transfer.completed`, `transfer.failed` or `transfer.cancelled`. The target is billed as a further leg. Tandem extension.',
        params: CallParams,
        body: TransferBody,
        response: {
          202: successOf(
            Type.Object({ leg: LegObjectSchema, transfer: transferSchema('consulting') }),
            'The target is being dialed.',
          ),
          ...REFUSALS,
        },
      },
    },
    async (request, reply) => {
      const principal = principalOf(request);
      const { leg = 'agent', mode = 'blind' } = request.body;
      const endpoint = readTarget(request.body, { ownUserId: principal.userId, numberPlan });
      const named = legOf(leg);
      const call = await findCall(request.params.id, principal);
      const transfer = { leg: legInPlace(call, named), mode };
      const target = { workspaceId: principal.workspaceId, callId: call.callId };
      const added = await dialer.addLeg(target, { role: 'party', mode: null, endpoint, transfer });
      return reply
        .status(202)
        .send(success({ leg: added, transfer: { id: added.leg_id, state: 'consulting' as const } }));
    },
  );

  app.post(
    '/dialer/click2call/:id/transfer/complete',
    {
      config: { access: 'writer' },
      schema: {
        tags: TAGS,
        operationId: 'completeCallTransfer',
        summary: 'Complete an attended transfer',
        description:
          'Hangs up the leg that consulted the target, which now talks with the other party. The leg completes the transfer, too, by hanging up. Tandem extension.',
        params: CallParams,
        response: { 200: successOf(CallData, 'The call, with the target in its place.'), ...REFUSALS },
      },
    },
    async (request) => success({ call: await control(request, { type: 'transfer.complete' }) }),
  );

  app.delete(
    '/dialer/click2call/:id/transfer',
    {
      config: { access: 'writer' },
      schema: {
        tags: TAGS,
        operationId: 'cancelCallTransfer',
        summary: 'Cancel a transfer',
        description: 'Hangs up the target of a transfer. Both parties talk again. Tandem extension.',
        params: CallParams,
        response: { 200: successOf(CallData, 'The call, as it was before the transfer.'), ...REFUSALS },
      },
    },
    async (request) => success({ call: await control(request, { type: 'transfer.cancel' }) }),
  );

  for (const [action, state, hangsUp] of [
    ['complete', 'completed', 'the leg that consulted the target'],
    ['cancel', 'cancelled', 'the target'],
  ] as const) {
    app.post(
      `/dialer/click2call/:id/transfer/:transfer_id/${action}`,
      {
        config: { access: 'writer' },
        schema: {
          tags: TAGS,
          operationId: `${action}NamedTransfer`,
          summary: `${action === 'complete' ? 'Complete' : 'Cancel'} a transfer by its id`,
          description: `Hangs up ${hangsUp}, if the transfer with that id is under way. Fails with TRANSFER_NOT_FOUND if it is not. Tandem extension.`,
          params: TransferParams,
          response: {
            200: successOf(
              Type.Object({ call: shared('Call'), transfer: transferSchema(state) }),
              'The call and its transfer.',
            ),
            ...REFUSALS,
          },
        },
      },
      async (request) => {
        const { transfer_id: target } = request.params;
        const call = await control(request, { type: `transfer.${action}`, target });
        return success({ call, transfer: { id: target, state } });
      },
    );
  }

  async function control(request: Parameters<typeof principalOf>[0] & { params: { id: string } }, wanted: CallControl) {
    const principal = principalOf(request);
    const { callId } = await findCall(request.params.id, principal);
    return await dialer.control({ workspaceId: principal.workspaceId, callId }, wanted);
  }
}

/** @throws TandemError VALIDATION_FAILED */
function readTarget(
  { endpoint, to }: Static<typeof TransferBody>,
  options: Omit<Parameters<typeof readEndpoint>[1], 'field'>,
): LegEndpoint {
  if (endpoint !== undefined && to !== undefined) {
    throw validationFailed([{ path: 'to', message: 'must not be combined with endpoint' }]);
  }
  const written = endpoint ?? to;
  if (written === undefined) throw validationFailed([{ path: 'endpoint', message: 'is required' }]);
  return readEndpoint(written, { ...options, field: endpoint === undefined ? 'to' : 'endpoint' });
}
