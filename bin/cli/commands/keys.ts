import { inTransaction, type SqlOrTx } from '../../../storage/database.ts';
import { fingerprintOf, mintApiKey } from '../../../storage/queries/api-key-secret.ts';
import { type ApiKeyRow, createApiKey, listApiKeys, revokeApiKey } from '../../../storage/queries/api-keys.ts';
import { findUserByEmail, roleOf } from '../../../storage/queries/workspaces.ts';
import { type Command, CommandError, defineAction, UsageError } from '../command.ts';
import { auditOperator, WORKSPACE_OPTION, withDatabase, workspaceOf } from '../operator-database.ts';
import { fields, table } from '../terminal.ts';

const list = defineAction({
  summary: 'List the active API keys of a workspace, newest first.',
  options: WORKSPACE_OPTION,
  run: async ({ host, values }) =>
    await withDatabase(host, async (sql) => {
      const { id: workspaceId, name } = await workspaceOf(sql, values.workspace);
      const { rows } = await listApiKeys(sql, { workspaceId }, { page: 1, limit: MAX_KEYS });
      const keys = rows.map(presentKey);
      const text = table(
        ['ID', 'NAME', 'KEY', 'CREATED', 'LAST USED', 'EXPIRES'],
        keys.map((key) => [key.id, key.name, key.key, key.created_at, key.last_used_at, key.expires_at]),
        `Workspace ${name} has no API key. Create one with tandem keys create.`,
      );
      return { data: { workspace_id: workspaceId, keys }, text };
    }),
});

const create = defineAction({
  summary: 'Create an API key and print it once; only its hash is stored.',
  parameters: [{ name: 'NAME', about: 'name of the key, such as its purpose' }],
  options: {
    ...WORKSPACE_OPTION,
    user: { value: 'EMAIL', about: 'member whose role the key has (default: the owner of the workspace)' },
    'expires-in-days': { value: 'DAYS', about: 'days until it expires, 1 to 3650 (default: never)' },
  },
  async run({ host, values, arguments: [name = ''] }) {
    if (name.trim() === '' || name.length > 100) throw new UsageError('NAME takes 1 to 100 characters');
    const days = values['expires-in-days'];
    if (days !== undefined && !(/^\d{1,4}$/.test(days) && Number(days) >= 1 && Number(days) <= 3650)) {
      throw new UsageError('--expires-in-days takes 1 to 3650');
    }
    return await withDatabase(host, async (sql) => {
      const workspace = await workspaceOf(sql, values.workspace);
      const userId =
        values.user === undefined
          ? workspace.ownerUserId
          : await memberOf(sql, { workspaceId: workspace.id, email: values.user });
      const apiKey = mintApiKey();
      const now = new Date();
      const row = await inTransaction(sql, async (tx) => {
        const created = await createApiKey(tx, {
          workspaceId: workspace.id,
          createdByUserId: userId,
          name,
          ...fingerprintOf(apiKey),
          expiresAt: days === undefined ? null : new Date(now.getTime() + Number(days) * 86_400_000),
          now,
        });
        const target = { type: 'api_key', id: created.id };
        await auditOperator(tx, {
          workspaceId: workspace.id,
          action: 'api_key.created',
          target,
          details: { name },
          now,
        });
        return created;
      });
      const { key: _masked, ...key } = presentKey(row);
      const text = fields([
        ['key', apiKey],
        ['id', key.id],
        ['name', key.name],
        ['workspace', `${workspace.name} (${workspace.id})`],
        ['expires', key.expires_at ?? 'when it is revoked'],
        ['', 'Keep the key: it cannot be shown again.'],
      ]);
      return { data: { api_key: apiKey, workspace_id: workspace.id, ...key }, text };
    });
  },
});

const revoke = defineAction({
  summary: 'Revoke an API key. Requests with it fail at once.',
  parameters: [{ name: 'ID', about: 'id from tandem keys list' }],
  options: WORKSPACE_OPTION,
  async run({ host, values, arguments: [id = ''] }) {
    if (!/^\d{1,9}$/.test(id)) throw new UsageError('ID is the number that tandem keys list shows');
    return await withDatabase(host, async (sql) => {
      const { id: workspaceId, name } = await workspaceOf(sql, values.workspace);
      const now = new Date();
      const isRevoked = await inTransaction(sql, async (tx) => {
        const wasLive = await revokeApiKey(tx, { workspaceId, id: Number(id), now });
        const target = { type: 'api_key', id };
        if (wasLive) await auditOperator(tx, { workspaceId, action: 'api_key.revoked', target, now });
        return wasLive;
      });
      if (!isRevoked) {
        const message = `workspace ${name} has no key ${id}, or it was revoked before: tandem keys list shows its keys.`;
        throw new CommandError('KEY_NOT_FOUND', message);
      }
      return { data: { id: Number(id), revoked: true }, text: `Key ${id} is revoked.` };
    });
  },
});

export const keysCommand: Command = { actions: { list, create, revoke } };

const MAX_KEYS = 10_000;

function presentKey(row: ApiKeyRow) {
  return {
    id: row.id,
    name: row.name,
    key: `${row.prefix}...${row.last4}`,
    created_at: row.createdAt.toISOString(),
    last_used_at: row.lastUsedAt?.toISOString() ?? null,
    expires_at: row.expiresAt?.toISOString() ?? null,
  };
}

/** @throws CommandError NOT_A_MEMBER */
async function memberOf(sql: SqlOrTx, { workspaceId, email }: { workspaceId: string; email: string }): Promise<number> {
  const user = await findUserByEmail(sql, email);
  const role = user && (await roleOf(sql, { workspaceId, userId: user.id }));
  if (user === null || role === null) {
    const message = `${email} is not a member of the workspace. tandem workspaces members lists the members.`;
    throw new CommandError('NOT_A_MEMBER', message);
  }
  return user.id;
}
