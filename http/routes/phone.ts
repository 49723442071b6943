import { Type } from 'typebox';
import type { CallRow } from '../../storage/queries/calls.ts';
import { listColleagues } from '../../storage/queries/memberships.ts';
import { type Principal, principalOf, requireAccess } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { baseUrlOf } from '../playback.ts';
import { PAGE_QUERY, pageOf, paginationOf, REFUSALS, success, successOf, TimeSchema } from '../schemas/envelope.ts';
import { PHONE_SOCKET_PATH } from '../websocket/phone-sockets.ts';
import { socketRoute } from './socket-route.ts';

const TAGS = ['click-to-call'];
const TokenSchema = Type.Object(
  {
    token: Type.String({ description: 'Connects one phone, once. Keep it secret.' }),
    expires_at: { ...TimeSchema, description: 'Connect before this time.' },
    url: Type.String({ description: 'WebSocket URL to connect to. Contains the token.' }),
  },
  {
    examples: [
      {
        token: 'pt_5f3c1a52-8c0e-4b1f-9d55-2b8a7c0f4e11.4pZ0mJq3oVb6Yk1tTzq8cQe1nS2f7H0aWgLr5dXuKcM',
        expires_at: '2026-01-31T09:31:00.120Z',
        url: 'wss://tandem.example.com/ws/phone?token=pt_5f3c1a52-8c0e-4b1f-9d55-2b8a7c0f4e11.4pZ0mJq3oVb6Yk1tTzq8cQe1nS2f7H0aWgLr5dXuKcM',
      },
    ],
  },
);

const ColleagueSchema = Type.Object(
  {
    user_id: Type.Integer({ description: 'Id of the user.' }),
    name: Type.String({ description: 'Name of the user; the e-mail address if there is none.' }),
  },
  { examples: [{ user_id: 18, name: 'Grace' }] },
);

interface PhoneRoutesOptions {
  context: HttpContext;
  findCall: (id: string, principal: Principal) => Promise<CallRow>;
}

export function phoneRoutes(app: HttpApp, { context, findCall }: PhoneRoutesOptions): void {
  app.post(
    '/phone/tokens',
    {
      config: { access: 'writer' },
      schema: {
        tags: TAGS,
        operationId: 'createPhoneToken',
        summary: 'Create a token for a phone in the browser',
        description:
          'Returns a token that connects a browser as a phone of your user, once and within 60 seconds. With the purpose `agent`, the phone rings for legs of agents and third parties; with `supervise`, for supervisors, which takes an admin or owner. `docs/phone.md` describes the messages. Tandem extension.',
        body: Type.Object(
          {
            purpose: Type.Enum(['agent', 'supervise'], { description: 'Legs that the phone rings for.' }),
            call_id: Type.Optional(
              Type.String({ description: 'call_id or reference_id of the only call to ring for. Default: all calls.' }),
            ),
          },
          { additionalProperties: false, examples: [{ purpose: 'agent' }] },
        ),
        response: { 201: successOf(TokenSchema, 'The token.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const principal = principalOf(request);
      const { purpose, call_id: id } = request.body;
      if (purpose === 'supervise') requireAccess(principal, 'admin');
      const callId = id === undefined ? null : (await findCall(id, principal)).callId;
      const { workspaceId, userId } = principal;
      const holder = { workspaceId, userId, purpose, callId, credentials: principal };
      const { token, expiresAt } = await context.phones.mint(holder);
      const origin = baseUrlOf(context, request).replace(/^http/, 'ws');
      const url = `${origin}${PHONE_SOCKET_PATH}?token=${token}`;
      return reply.status(201).send(success({ token, expires_at: expiresAt.toISOString(), url }));
    },
  );

  app.get(
    '/phone/colleagues',
    {
      config: { access: 'writer' },
      schema: {
        tags: TAGS,
        operationId: 'listColleagues',
        summary: 'List colleagues to transfer a call to',
        description:
          'Returns the other users of the workspace who can have a phone in the browser, by name. Their `user_id` is that of the `endpoint` of a transfer or a further leg. Tandem extension.',
        querystring: Type.Object(PAGE_QUERY),
        response: { 200: successOf(pageOf('colleagues', ColleagueSchema), 'One page of colleagues.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { rows, total } = await listColleagues(context.sql, principalOf(request), request.query);
      const colleagues = rows.map(({ userId, name }) => ({ user_id: userId, name }));
      return success({ colleagues, pagination: paginationOf(request.query, total) });
    },
  );

  socketRoute(app, PHONE_SOCKET_PATH, {
    tags: TAGS,
    operationId: 'connectPhone',
    summary: 'Connect a phone in the browser over a WebSocket',
    description:
      'Upgrade to a WebSocket (RFC 6455) with the token of POST /phone/tokens in the query: `token`, or `resume` to come back within ten seconds. `docs/phone.md` describes the messages. A request without an upgrade returns `ok`.',
  });
}
