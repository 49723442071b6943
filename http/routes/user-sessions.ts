import { Type } from 'typebox';
import { TandemError } from '../../machines/errors.ts';
import { listSessions, revokeSessionOf, revokeSessionsOf, type SessionRow } from '../../storage/queries/sessions.ts';
import { callerOf } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import {
  nullable,
  PAGE_QUERY,
  pageOf,
  paginationOf,
  REFUSALS,
  success,
  successOf,
  TimeSchema,
} from '../schemas/envelope.ts';
import { clearSessionCookie, usedSessionCookie } from '../session-cookie.ts';

const TAGS = ['accounts'];

export function userSessionRoutes(app: HttpApp, context: HttpContext): void {
  const { sql, revocations, now } = context;

  app.get(
    '/user/sessions',
    {
      config: { access: 'user', credentials: 'session' },
      schema: {
        tags: TAGS,
        operationId: 'listSessions',
        summary: 'List sessions',
        description: 'Returns the sessions of the user that have not ended, newest first. Tandem extension.',
        querystring: Type.Object(PAGE_QUERY),
        response: { 200: successOf(pageOf('sessions', SessionSchema), 'One page of sessions.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { userId, sessionId } = callerOf(request);
      const { rows, total } = await listSessions(sql, { userId, now: now() }, request.query);
      return success({
        sessions: rows.map((row) => presentSession(row, sessionId)),
        pagination: paginationOf(request.query, total),
      });
    },
  );

  app.delete(
    '/user/sessions',
    {
      config: { access: 'user', credentials: 'session' },
      schema: {
        tags: TAGS,
        operationId: 'endSessions',
        summary: 'Log out everywhere',
        description:
          'Ends all other sessions of the user, or with `current=true` this one too, and closes their open streams and sockets. Tandem extension.',
        querystring: Type.Object({
          current: Type.Boolean({ default: false, description: 'True also ends the session of this request.' }),
        }),
        response: { 200: successOf(SessionsEndedSchema, 'The sessions were ended.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { userId, sessionId } = callerOf(request);
      const { current } = request.query;
      const ended = await revokeSessionsOf(sql, { userId, except: current ? null : sessionId, now: now() });
      if (current && usedSessionCookie(request) !== null) clearSessionCookie(reply, context);
      for (const id of ended) revocations.publish({ kind: 'session', id });
      return success({ sessions_ended: ended.length });
    },
  );

  app.delete(
    '/user/sessions/:id',
    {
      config: { access: 'user', credentials: 'session' },
      schema: {
        tags: TAGS,
        operationId: 'endSession',
        summary: 'End a session',
        description: 'Ends a session of the user, and closes its open streams and sockets. Tandem extension.',
        params: Type.Object({ id: Type.String({ description: 'Id of the session.' }) }),
        response: { 200: successOf(SessionEndedSchema, 'The session was ended.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const { userId, sessionId } = callerOf(request);
      const id = request.params.id.toLowerCase();
      if (!(await revokeSessionOf(sql, { id, userId, now: now() }))) {
        throw new TandemError('SESSION_NOT_FOUND', 'You have no session with this id, or it has ended.');
      }
      if (id === sessionId && usedSessionCookie(request) !== null) clearSessionCookie(reply, context);
      revocations.publish({ kind: 'session', id });
      return success({ id, logged_out: true });
    },
  );
}

const SESSION_ID = '5f0c6f0e-8a54-4b0e-9f0e-2d2f3c1b7a10';

const SessionSchema = Type.Object(
  {
    id: Type.String({ format: 'uuid', description: 'Id of the session.' }),
    created_at: { ...TimeSchema, description: 'When the user logged in.' },
    last_used_at: nullable({ ...TimeSchema, description: 'When it was last used, to the minute.' }),
    expires_at: { ...TimeSchema, description: 'When the session expires.' },
    user_agent: nullable(Type.String({ description: 'User-Agent of the client that logged in.' })),
    address: nullable(Type.String({ description: 'Network address of the client that logged in.' })),
    current: Type.Boolean({ description: 'True for the session of this request.' }),
  },
  {
    examples: [
      {
        id: SESSION_ID,
        created_at: '2026-01-31T09:30:00.000Z',
        last_used_at: '2026-01-31T10:12:00.000Z',
        expires_at: '2026-01-31T21:30:00.000Z',
        user_agent: 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0',
        address: '203.0.113.9',
        current: true,
      },
    ],
  },
);

const SessionEndedSchema = Type.Object(
  { id: Type.String({ format: 'uuid' }), logged_out: Type.Literal(true) },
  { examples: [{ id: SESSION_ID, logged_out: true }] },
);

const SessionsEndedSchema = Type.Object(
  { sessions_ended: Type.Integer({ description: 'Number of sessions that ended.' }) },
  { examples: [{ sessions_ended: 2 }] },
);

function presentSession(row: SessionRow, currentId: string | null) {
  return {
    id: row.id,
    created_at: row.createdAt.toISOString(),
    last_used_at: row.lastUsedAt?.toISOString() ?? null,
    expires_at: row.expiresAt.toISOString(),
    user_agent: row.userAgent,
    address: row.address,
    current: row.id === currentId,
  };
}
