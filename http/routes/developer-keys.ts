import { Type } from 'typebox';
import { TandemError } from '../../machines/errors.ts';
import { inTransaction } from '../../storage/database.ts';
import { fingerprintOf, mintApiKey } from '../../storage/queries/api-key-secret.ts';
import { type ApiKeyRow, createApiKey, listApiKeys, revokeApiKey } from '../../storage/queries/api-keys.ts';
import { holdMembership } from '../../storage/queries/memberships.ts';
import { type Principal, principalOf, requireAccess, roleAllows } from '../auth.ts';
import type { HttpApp, HttpContext } from '../context.ts';
import { SCOPES } from '../permissions.ts';
import { recordAction } from '../recorded-action.ts';
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
import { parseTime } from '../schemas/time.ts';
import { validationFailed } from '../validation.ts';

const TAGS = ['keys'];

export function developerKeyRoutes(app: HttpApp, { sql, revocations, now }: HttpContext): void {
  app.get(
    '/developer/api',
    {
      config: { access: 'member' },
      schema: {
        tags: TAGS,
        operationId: 'listApiKeys',
        summary: 'List API keys',
        description:
          'Returns the API keys, newest first. Owners and admins see all keys of the workspace, others their own.',
        querystring: Type.Object(PAGE_QUERY),
        response: { 200: successOf(pageOf('keys', ApiKeySchema), 'One page of keys.'), ...REFUSALS },
      },
    },
    async (request) => {
      const { rows, total } = await listApiKeys(sql, visibleTo(principalOf(request)), request.query);
      return success({ keys: rows.map(presentKey), pagination: paginationOf(request.query, total) });
    },
  );

  app.post(
    '/developer/api',
    {
      config: { access: 'writer', credentials: 'session' },
      schema: {
        tags: TAGS,
        operationId: 'createApiKey',
        summary: 'Create an API key',
        description: [
          'Creates an API key and returns it once. Requires a session token; an API key cannot create keys. The key acts as',
          'you, with the role you have when it is used, and is limited to its scopes. Without scopes it can do everything',
          'that your role allows.',
        ].join(' '),
        body: NewKeyBody,
        response: { 201: successOf(NewKeySchema, 'The key was created. Only its hash is stored.'), ...REFUSALS },
      },
    },
    async (request, reply) => {
      const principal = principalOf(request);
      const { workspaceId, userId } = principal;
      const at = now();
      const expiresAt = readExpiry(request.body.expires_at, at);
      const key = mintApiKey();
      const row = await inTransaction(sql, async (tx) => {
        // A user who is being removed must not leave a key that works when they rejoin.
        const role = await holdMembership(tx, principal);
        if (role === null) throw new TandemError('WORKSPACE_NOT_FOUND', 'You are no longer a member of the workspace.');
        requireAccess({ ...principal, role }, 'writer');
        const made = await createApiKey(tx, {
          workspaceId,
          createdByUserId: userId,
          name: request.body.name,
          ...fingerprintOf(key),
          scopes: [...new Set(request.body.scopes ?? [])],
          expiresAt,
          now: at,
        });
        await recordAction(tx, request, {
          action: 'api_key.created',
          target: { type: 'api_key', id: made.id },
          details: {
            name: made.name,
            last4: made.last4,
            scopes: made.scopes,
            expires_at: expiresAt?.toISOString() ?? null,
          },
          now: at,
        });
        return made;
      });
      return reply.code(201).send(success({ ...presentKey(row), key }));
    },
  );

  app.delete(
    '/developer/api/:id',
    {
      config: { access: 'writer' },
      schema: {
        tags: TAGS,
        operationId: 'deleteApiKey',
        summary: 'Delete an API key',
        description:
          'Deletes an API key immediately, and closes its open streams and sockets. Owners and admins can delete any key, others their own.',
        params: Type.Object({ id: Type.String({ description: 'Id of the key.' }) }),
        response: {
          200: successOf(
            Type.Object({ id: Type.Integer(), deleted: Type.Literal(true) }, { examples: [{ id: 7, deleted: true }] }),
            'The key was deleted.',
          ),
          ...REFUSALS,
        },
      },
    },
    async (request) => {
      const actor = principalOf(request);
      const id = readKeyId(request.params.id);
      const at = now();
      await inTransaction(sql, async (tx) => {
        if (!(await revokeApiKey(tx, { ...visibleTo(actor), id, now: at }))) throw keyNotFound();
        await recordAction(tx, request, {
          action: 'api_key.revoked',
          target: { type: 'api_key', id },
          now: at,
        });
      });
      revocations.publish({ kind: 'api_key', id });
      return success({ id, deleted: true });
    },
  );
}

const ApiKeyFields = {
  id: Type.Integer({ description: 'Id of the key.' }),
  name: Type.String({ description: 'Name of the key.' }),
  prefix: Type.String({ description: 'First characters of the key.' }),
  last4: Type.String({ description: 'Last four characters of the key.' }),
  scopes: Type.Array(Type.Enum([...SCOPES]), {
    description: 'Scopes. An empty list allows everything that the role allows.',
  }),
  created_at: TimeSchema,
  last_used_at: nullable({ ...TimeSchema, description: 'When the key was last used.' }),
  expires_at: nullable({ ...TimeSchema, description: 'When the key expires. Null: never.' }),
  created_by_user_id: Type.Integer({ description: 'User who created the key, and whom it acts as.' }),
};

const KEY_EXAMPLE = {
  id: 7,
  name: 'CRM',
  prefix: 'sk_Zk3v',
  last4: '9fQa',
  scopes: ['calls:read', 'calls:write'],
  created_at: '2026-01-31T09:30:00.000Z',
  last_used_at: null,
  expires_at: '2027-01-31T00:00:00.000Z',
  created_by_user_id: 17,
};

const ApiKeySchema = Type.Object(ApiKeyFields, { examples: [KEY_EXAMPLE] });

const NewKeySchema = Type.Object(
  { ...ApiKeyFields, key: Type.String({ description: 'The API key. It cannot be read again.' }) },
  { examples: [{ ...KEY_EXAMPLE, key: 'sk_Zk3v...9fQa' }] },
);

const NewKeyBody = Type.Object(
  {
    name: Type.String({
      minLength: 1,
      maxLength: 100,
      pattern: '^[^\\u0000]*[^\\s\\u0000][^\\u0000]*$',
      description: 'Name of the key, up to 100 characters.',
    }),
    scopes: Type.Optional(
      Type.Array(Type.Enum([...SCOPES]), {
        maxItems: 50,
        description: 'Scopes of the key. Default, also with an empty list: everything that the role allows.',
      }),
    ),
    expires_at: Type.Optional(
      nullable(Type.String({ description: 'Expiry, in ISO 8601. Must be in the future. Default: never.' })),
    ),
  },
  {
    additionalProperties: false,
    examples: [{ name: 'CRM', scopes: ['calls:read', 'calls:write'], expires_at: '2027-01-31T00:00:00.000Z' }],
  },
);

/** Selects the keys that the caller may list and delete. */
function visibleTo({ workspaceId, role, userId }: Principal): { workspaceId: string; createdByUserId?: number } {
  return roleAllows(role, 'admin') ? { workspaceId } : { workspaceId, createdByUserId: userId };
}

function presentKey(row: ApiKeyRow) {
  return {
    id: row.id,
    name: row.name,
    prefix: row.prefix,
    last4: row.last4,
    scopes: row.scopes,
    created_at: row.createdAt.toISOString(),
    last_used_at: row.lastUsedAt?.toISOString() ?? null,
    expires_at: row.expiresAt?.toISOString() ?? null,
    created_by_user_id: row.createdByUserId,
  };
}

function readExpiry(text: unknown, now: Date): Date | null {
  if (typeof text !== 'string') return null;
  const expiresAt = parseTime(text);
  if (expiresAt === null || expiresAt <= now) {
    throw validationFailed([{ path: 'expires_at', message: 'must be an ISO 8601 time in the future' }]);
  }
  return expiresAt;
}

/** The column is a 32-bit integer. */
function readKeyId(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw keyNotFound();
  return Number(text);
}

function keyNotFound(): TandemError {
  return new TandemError('KEY_NOT_FOUND', 'No API key has this id, or it has been deleted.');
}
