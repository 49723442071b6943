import { Type } from 'typebox';
import type { PublicLeg } from '../../actors/call-view.ts';
import { TandemError } from '../../machines/errors.ts';
import type { CallLeg, LegEndpoint, SupervisionMode } from '../../machines/events.ts';
import { inTransaction } from '../../storage/database.ts';
import type { CallRow } from '../../storage/queries/calls.ts';
import { type Principal, principalOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { recordAction } from '../recorded-action.ts';
import { CallNameSchema, CallParams, LegObjectSchema, SupervisionModeSchema } from '../schemas/call.ts';
import { EndpointSchema, readEndpoint } from '../schemas/endpoint.ts';
import { REFUSALS, shared, success, successOf } from '../schemas/envelope.ts';

const TAGS = ['click-to-call'];
const LegParams = Type.Object({
  id: CallNameSchema,
  leg_id: Type.String({ description: 'leg_id of a leg that was added.' }),
});
const SupervisionParams = Type.Object({
  id: CallNameSchema,
  supervision_id: Type.String({ description: 'Id of the supervision.' }),
});

const SUPERVISION_ID = 'leg_5f0c7a1e-2b8d-4f6a-9f58-2f0d3f6f1b21';
const SupervisionSchema = Type.Object(
  {
    id: Type.String({ description: 'Id of the supervision.' }),
    mode: SupervisionModeSchema,
    leg_id: Type.String({ description: 'Leg of the supervisor.' }),
    state: LegObjectSchema.properties.state,
  },
  { examples: [{ id: SUPERVISION_ID, mode: 'listen', leg_id: SUPERVISION_ID, state: 'dialing' }] },
);
const SupervisionData = Type.Object({ supervision: SupervisionSchema });

interface CallLegsOptions {
  context: HttpContext;
  findCall: (id: string, principal: Principal) => Promise<CallRow>;
}

export function callLegRoutes(app: HttpApp, { context, findCall }: CallLegsOptions): void {
  const { dialer, sql, now, numberPlan } = context;

  app.post(
    '/dialer/click2call/:id/legs',
    {
      config: { access: 'writer' },
      schema: {
        tags: TAGS,
        operationId: 'addCallLeg',
        summary: 'Add a party to a call',
        description:
          "Dials one more party: a phone over the trunk of the call, with the call's caller ID, or the browser of a user. The response arrives when the party is being dialed; when it answers, all parties hear each other. Adds the events `leg.dialing`, `leg.ringing`, `leg.joined`, and `leg.left` or `leg.failed` at the end. The call ends when the agent or the customer hangs up, and goes on when another party does. A party is billed at the price of the call, per second from its answer, as `legs_cost_usd`. It is recorded on the customer's channel, and transcribed if the call is. At most 8 legs can be added. Tandem extension.",
        params: CallParams,
        body: Type.Object(
          {
            endpoint: EndpointSchema,
            role: Type.Optional(Type.Enum(['party'], { default: 'party', description: 'Role of the leg.' })),
          },
          { additionalProperties: false, examples: [{ endpoint: { type: 'phone', number: '+919800000003' } }] },
        ),
        response: {
          202: successOf(Type.Object({ leg: LegObjectSchema }), 'The party is being dialed.'),
          ...REFUSALS,
        },
      },
    },
    async (request, reply) => {
      const principal = principalOf(request);
      const endpoint = readEndpoint(request.body.endpoint, { ownUserId: principal.userId, numberPlan });
      const { callId } = await findCall(request.params.id, principal);
      const target = { workspaceId: principal.workspaceId, callId };
      const leg = await dialer.addLeg(target, { role: 'party', mode: null, endpoint });
      return reply.status(202).send(success({ leg }));
    },
  );

  app.delete(
    '/dialer/click2call/:id/legs/:leg_id',
    {
      config: { access: 'writer' },
      schema: {
        tags: TAGS,
        operationId: 'removeCallLeg',
        summary: 'Remove a party from a call',
        description:
          'Hangs up a party that was added, and answers when the leg has ended. To end the agent or the customer, hang up the call. Adds the event `leg.left`, or `leg.failed` if it had not answered. Tandem extension.',
        params: LegParams,
        response: {
          200: successOf(Type.Object({ call: shared('Call') }), 'The call, without the party.'),
          ...REFUSALS,
        },
      },
    },
    async (request) => {
      const principal = principalOf(request);
      const { callId } = await liveLeg(request.params.id, principal, (leg) => {
        return leg.legId === request.params.leg_id && leg.role === 'party';
      });
      const target = { workspaceId: principal.workspaceId, callId };
      return success({ call: await dialer.control(target, { type: 'leg.drop', leg: request.params.leg_id }) });
    },
  );

  app.post(
    '/dialer/click2call/:id/supervise',
    {
      config: { access: 'admin' },
      schema: {
        tags: TAGS,
        operationId: 'superviseCall',
        summary: 'Supervise a call',
        description:
          "Dials a supervisor, at a phone or in a browser, who joins the call on answering: `listen` (no party hears the supervisor), `whisper` (only the agent does) or `barge` (all parties do). The parties get no signal of it. Adds the events of a leg, and `supervision.started` and `supervision.ended`. A supervisor is recorded only in the mode `barge`, on the agent's channel. Billed as a further leg. Admins and owners only. Written to the audit log. Tandem extension.",
        params: CallParams,
        body: Type.Object(
          { mode: SupervisionModeSchema, endpoint: EndpointSchema },
          {
            additionalProperties: false,
            examples: [{ mode: 'listen', endpoint: { type: 'phone', number: '+919800000004' } }],
          },
        ),
        response: { 201: successOf(SupervisionData, 'The supervisor is being dialed.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const principal = principalOf(request);
      const endpoint = readEndpoint(request.body.endpoint, { ownUserId: principal.userId, numberPlan });
      const { mode } = request.body;
      const { callId } = await findCall(request.params.id, principal);
      // Audit first: if the log cannot be written, the supervision must not start.
      await audit(request, { callId, details: { mode, ...audited(endpoint) } });
      const target = { workspaceId: principal.workspaceId, callId };
      const leg = await dialer.addLeg(target, { role: 'supervisor', mode, endpoint });
      return reply.status(201).send(success({ supervision: presentSupervision(leg) }));
    },
  );

  app.patch(
    '/dialer/click2call/:id/supervise/:supervision_id',
    {
      config: { access: 'admin' },
      schema: {
        tags: TAGS,
        operationId: 'changeSupervision',
        summary: 'Change the mode of a supervision',
        description:
          'Changes which parties hear a supervisor who has answered. Adds the event `supervision.changed`. Admins and owners only. Written to the audit log. Tandem extension.',
        params: SupervisionParams,
        body: Type.Object(
          { mode: SupervisionModeSchema },
          { additionalProperties: false, examples: [{ mode: 'whisper' }] },
        ),
        response: { 200: successOf(SupervisionData, 'The supervision has the new mode.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { supervision_id: leg } = request.params;
      const { mode } = request.body;
      const principal = principalOf(request);
      const { callId } = await supervised(request.params.id, principal, leg);
      await audit(request, { callId, details: { mode, supervision_id: leg } });
      const target = { workspaceId: principal.workspaceId, callId };
      const call = await dialer.control(target, { type: 'supervise', leg, mode });
      const changed = call.legs.find(({ leg_id }) => leg_id === leg);
      if (changed === undefined) throw legNotFound();
      return success({ supervision: presentSupervision(changed) });
    },
  );

  app.delete(
    '/dialer/click2call/:id/supervise/:supervision_id',
    {
      config: { access: 'admin' },
      schema: {
        tags: TAGS,
        operationId: 'endSupervision',
        summary: 'End a supervision',
        description:
          'Hangs up the supervisor, and answers when the leg has ended. The call goes on. Adds the events `supervision.ended` and `leg.left`, or `leg.failed` if the supervisor had not answered. Admins and owners only. Written to the audit log. Tandem extension.',
        params: SupervisionParams,
        response: {
          200: successOf(Type.Object({ call: shared('Call') }), 'The call, without the supervisor.'),
          ...REFUSALS,
        },
      },
    },
    async (request) => {
      const { supervision_id: leg } = request.params;
      const principal = principalOf(request);
      const { callId } = await supervised(request.params.id, principal, leg);
      await audit(request, { callId, details: { supervision_id: leg, ended: true } });
      const target = { workspaceId: principal.workspaceId, callId };
      return success({ call: await dialer.control(target, { type: 'leg.drop', leg }) });
    },
  );

  /** @throws TandemError LEG_NOT_FOUND unless the call has such a leg and it is still connected */
  async function liveLeg(id: string, principal: Principal, isWanted: (leg: CallLeg) => boolean): Promise<CallRow> {
    const call = await findCall(id, principal);
    if (!call.legs.some((leg) => leg.state !== 'ended' && isWanted(leg))) throw legNotFound();
    return call;
  }

  async function supervised(id: string, principal: Principal, legId: string): Promise<CallRow> {
    return await liveLeg(id, principal, (leg) => leg.legId === legId && leg.role === 'supervisor');
  }

  async function audit(
    request: Parameters<typeof recordAction>[1],
    { callId, details }: { callId: string; details: Record<string, unknown> },
  ): Promise<void> {
    const entry = { action: 'call.supervised', target: { type: 'call', id: callId }, details, now: now() } as const;
    await inTransaction(sql, (tx) => recordAction(tx, request, entry));
  }
}

function audited(endpoint: LegEndpoint) {
  return endpoint.type === 'phone' ? { number: endpoint.number } : { user_id: endpoint.userId };
}

function legNotFound(): TandemError {
  return new TandemError('LEG_NOT_FOUND', 'The call has no such leg, or it is gone. GET the call to see its legs.');
}

function presentSupervision({ leg_id, mode, state }: PublicLeg) {
  return { id: leg_id, mode: mode as SupervisionMode, leg_id, state };
}
