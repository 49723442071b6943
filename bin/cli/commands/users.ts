import type { Config } from '../../../config.ts';
import { readMasterKey } from '../../../storage/data-folder.ts';
import { inTransaction, type Sql, type Tx } from '../../../storage/database.ts';
import { createInvitation } from '../../../storage/queries/invitations.ts';
import { createLoginLink, LOGIN_LINK_MS } from '../../../storage/queries/login-links.ts';
import { workspacesOf } from '../../../storage/queries/password-changes.ts';
import { PASSWORD_RESET_MS, passwordResetToken } from '../../../storage/queries/password-resets.ts';
import { findUserByEmail } from '../../../storage/queries/workspaces.ts';
import { derivedKey, URL_SIGNING } from '../../../storage/secrets.ts';
import { localUrl } from '../api-access.ts';
import { type Command, CommandError, defineAction, type Outcome, UsageError } from '../command.ts';
import { auditOperator, withDatabase, workspaceOf } from '../operator-database.ts';
import { fields } from '../terminal.ts';

const resetPassword = defineAction({
  summary: 'Print a link with which a user can set a new password, once and within an hour.',
  parameters: [{ name: 'EMAIL', about: 'the user' }],
  run: async ({ host, arguments: [email = ''] }) =>
    await withDatabase(host, async (sql, settings) => {
      const user = await requireUser(sql, email);
      const masterKey = settings.secretKey ?? (await readMasterKey(settings.dataDir));
      if (masterKey === null) {
        throw new CommandError('NO_SECRET_KEY', 'the secret key of the server is unknown: set TANDEM_SECRET_KEY.');
      }
      const now = new Date();
      const expiresAt = new Date(now.getTime() + PASSWORD_RESET_MS);
      const token = passwordResetToken(user, { secret: derivedKey(masterKey, URL_SIGNING), expiresAt });
      await inTransaction(sql, (tx) => auditLink(tx, { userId: user.id, action: 'user.reset_link_created', now }));
      return linkFor(user, { settings, path: '/auth/password/reset', token, expiresAt });
    }),
});

const loginLink = defineAction({
  summary: 'Print a link that logs a user in to the console, once and within 15 minutes.',
  parameters: [{ name: 'EMAIL', about: 'the user' }],
  run: async ({ host, arguments: [email = ''] }) =>
    await withDatabase(host, async (sql, settings) => {
      const user = await requireUser(sql, email);
      const now = new Date();
      const { token, expiresAt } = await inTransaction(sql, async (tx) => {
        await auditLink(tx, { userId: user.id, action: 'user.login_link_created', now });
        return await createLoginLink(tx, { userId: user.id, lifetimeMs: LOGIN_LINK_MS, now });
      });
      return linkFor(user, { settings, path: '/console/login', token, expiresAt });
    }),
});

async function requireUser(sql: Sql, email: string) {
  const user = await findUserByEmail(sql, email);
  if (user === null) throw new CommandError('USER_NOT_FOUND', `no user has the e-mail address ${email}.`);
  return user;
}

/** Writes an entry to the audit log of each of the user's workspaces. */
async function auditLink(
  tx: Tx,
  { userId, action, now }: { userId: number; action: `user.${'reset' | 'login'}_link_created`; now: Date },
): Promise<void> {
  const target = { type: 'user', id: userId };
  for (const workspaceId of await workspacesOf(tx, userId)) {
    await auditOperator(tx, { workspaceId, action, target, now });
  }
}

function linkFor(
  { email }: { email: string },
  { settings, path, token, expiresAt }: { settings: Config; path: string; token: string; expiresAt: Date },
): Outcome {
  const origin = settings.publicUrl?.replace(/\/$/, '') ?? localUrl(settings);
  const url = `${origin}${path}?token=${token}`;
  const text = fields([
    ['link', url],
    ['user', email],
    ['expires', expiresAt.toISOString()],
    ['', 'Send the link over a channel only the user can read. It works once.'],
  ]);
  return { data: { email, url, token, expires_at: expiresAt.toISOString() }, text };
}

const invite = defineAction({
  summary: 'Invite a person to make an account, or to join a workspace; prints a token that works once.',
  parameters: [{ name: 'EMAIL', about: 'e-mail address of the person' }],
  options: {
    workspace: { value: 'ID|NAME', about: 'the workspace to join (default: a workspace of their own)' },
    role: { value: 'ROLE', about: 'role in that workspace: owner, admin, developer (default), member or viewer' },
    hours: { value: 'N', about: 'hours until the token expires, 1 to 720 (default: 72)' },
  },
  async run({ host, values, arguments: [email = ''] }) {
    if (!/^[^\s@]+@[^\s@]+$/.test(email) || email.length > 254) throw new UsageError('EMAIL takes an e-mail address');
    const role = ROLES.find((each) => each === (values.role ?? 'developer'));
    if (role === undefined) throw new UsageError(`--role takes one of ${ROLES.join(', ')}`);
    if (values.role !== undefined && values.workspace === undefined) throw new UsageError('--role needs --workspace');
    const hours = /^\d{1,3}$/.test(values.hours ?? '72') ? Number(values.hours ?? 72) : 0;
    if (hours < 1 || hours > 720) throw new UsageError('--hours takes 1 to 720');
    return await withDatabase(host, async (sql, { registration }) => {
      const { id: workspaceId } = await workspaceOf(sql, values.workspace);
      const kind = values.workspace === undefined ? 'account' : 'member';
      const now = new Date();
      const expiresAt = new Date(now.getTime() + hours * 3_600_000);
      const invitation = await inTransaction(sql, async (tx) => {
        const created = await createInvitation(tx, {
          ...{ workspaceId, kind, email, expiresAt, now },
          role: kind === 'member' ? role : null,
          invitedBy: null,
        });
        const target = { type: 'invitation', id: created.id };
        const details = { email: created.email, kind, role: created.role };
        await auditOperator(tx, { workspaceId, action: 'invitation.created', target, details, now });
        return created;
      });
      const text = fields([
        ['token', invitation.token],
        ['email', invitation.email],
        ['expires', expiresAt.toISOString()],
        ['', 'The person sends it as "invitation" to POST /auth/register. It works once.'],
        ...(registration === 'closed'
          ? ([['', 'REGISTRATION is closed: set REGISTRATION=invite to let the person register.']] as [
              string,
              string,
            ][])
          : []),
      ]);
      const { id, token, role: granted } = invitation;
      const data = { id, token, kind, email: invitation.email, role: granted, expires_at: expiresAt.toISOString() };
      return { data, text };
    });
  },
});

const ROLES = ['owner', 'admin', 'developer', 'member', 'viewer'] as const;

export const usersCommand: Command = { actions: { invite, 'login-link': loginLink, 'reset-password': resetPassword } };
