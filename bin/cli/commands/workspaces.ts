import { nanoToUsd } from '../../../runtime/money.ts';
import { inTransaction, type SqlOrTx } from '../../../storage/database.ts';
import { listMembers } from '../../../storage/queries/memberships.ts';
import { createWorkspace, PLANS, type Plan } from '../../../storage/queries/workspaces.ts';
import { type Command, defineAction, UsageError } from '../command.ts';
import { formatUsd } from '../money.ts';
import { auditOperator, withDatabase, workspaceOf } from '../operator-database.ts';
import { fields, table } from '../terminal.ts';

const list = defineAction({
  summary: 'List all workspaces, oldest first.',
  run: async ({ host }) =>
    await withDatabase(host, async (sql) => {
      const rows = await allWorkspaces(sql);
      const text = table(
        ['ID', 'NAME', 'PLAN', 'OWNER', 'MEMBERS', 'BALANCE'],
        rows.map((row) => [row.id, row.name, row.plan, row.ownerEmail, row.members, formatUsd(row.balanceNano)]),
        'No workspace exists yet. The first start of the server creates one.',
      );
      const workspaces = rows.map(({ id, name, plan, ownerEmail, members, balanceNano, createdAt }) => ({
        id,
        name,
        plan,
        owner_email: ownerEmail,
        members,
        balance_usd: nanoToUsd(balanceNano),
        created_at: createdAt.toISOString(),
      }));
      return { data: { workspaces }, text };
    }),
});

const create = defineAction({
  summary: 'Create a workspace with an empty wallet.',
  parameters: [{ name: 'NAME', about: 'shown to its members' }],
  options: {
    owner: { value: 'EMAIL', about: 'e-mail of the owner (required); creates a user without a password if unknown' },
    plan: { value: 'PLAN', about: 'free (default), starter, pro or enterprise' },
  },
  async run({ host, values, arguments: [name = ''] }) {
    if (name.trim() === '' || name.length > 100) throw new UsageError('NAME takes 1 to 100 characters');
    const email = values.owner ?? '';
    if (!/^[^\s@]+@[^\s@]+$/.test(email) || email.length > 254) {
      throw new UsageError('--owner takes the e-mail address of the owner, such as --owner owner@example.com');
    }
    const plan = PLANS.find((each) => each === (values.plan ?? 'free'));
    if (plan === undefined) throw new UsageError(`--plan takes one of ${PLANS.join(', ')}`);
    return await withDatabase(host, async (sql) => {
      const now = new Date();
      const { workspace, user } = await inTransaction(sql, async (tx) => {
        const created = await createWorkspace(tx, { name, plan, owner: { email, passwordHash: null }, now });
        const workspaceId = created.workspace.id;
        const target = { type: 'workspace', id: workspaceId };
        await auditOperator(tx, { workspaceId, action: 'workspace.created', target, details: { name, plan }, now });
        return created;
      });
      const text = fields([
        ['id', workspace.id],
        ['name', workspace.name],
        ['plan', workspace.plan],
        ['owner', user.email],
        ['next', `tandem keys create NAME --workspace ${workspace.id}`],
      ]);
      const { id, createdAt } = workspace;
      return { data: { id, name, plan, owner_email: user.email, created_at: createdAt.toISOString() }, text };
    });
  },
});

const members = defineAction({
  summary: 'List the members of a workspace and their roles.',
  parameters: [{ name: 'ID|NAME', about: 'the workspace (default: the first one)', optional: true }],
  run: async ({ host, arguments: [idOrName] }) =>
    await withDatabase(host, async (sql) => {
      const workspace = await workspaceOf(sql, idOrName);
      const { rows } = await listMembers(sql, { workspaceId: workspace.id }, { page: 1, limit: MAX_MEMBERS });
      const text = table(
        ['USER', 'EMAIL', 'NAME', 'ROLE', 'SINCE'],
        rows.map((row) => [row.userId, row.email, row.name || null, row.role, row.createdAt.toISOString()]),
        `Workspace ${workspace.name} has no members.`,
      );
      const presented = rows.map(({ userId, email, name, role, createdAt }) => ({
        user_id: userId,
        email,
        name,
        role,
        created_at: createdAt.toISOString(),
      }));
      return { data: { workspace_id: workspace.id, members: presented }, text };
    }),
});

export const workspacesCommand: Command = { actions: { list, create, members } };

const MAX_MEMBERS = 10_000;

interface WorkspaceSummary {
  id: string;
  name: string;
  plan: Plan;
  ownerEmail: string;
  members: number;
  /** Balance of the wallet, including holds. */
  balanceNano: bigint;
  createdAt: Date;
}

async function allWorkspaces(sql: SqlOrTx): Promise<WorkspaceSummary[]> {
  return await sql<WorkspaceSummary[]>`
    select w.id, w.name, w.plan, u.email as owner_email, w.created_at,
      (select count(*)::int from memberships m where m.workspace_id = w.id) as members,
      (select sum(a.balance_nano)::bigint from accounts a
        where a.workspace_id = w.id and a.kind in ('wallet', 'held')) as balance_nano
    from workspaces w join users u on u.id = w.owner_user_id
    order by w.created_at, w.id`;
}
