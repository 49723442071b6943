import { readMasterKey } from '../../../storage/data-folder.ts';
import { inTransaction } from '../../../storage/database.ts';
import { createInvitation } from '../../../storage/queries/invitations.ts';
import { PASSWORD_RESET_MS, passwordResetToken, workspacesOf } from '../../../storage/queries/password-resets.ts';
import { findUserByEmail } from '../../../storage/queries/workspaces.ts';
import { derivedKey, URL_SIGNING } from '../../../storage/secrets.ts';
import { localUrl } from '../api-access.ts';
import { type Command, CommandError, defineAction, UsageError } from '../command.ts';
import { auditOperator, withDatabase, workspaceOf } from '../operator-database.ts';
import { readSettings } from '../settings.ts';
import { fields } from '../terminal.ts';

const resetPassword = defineAction({
  summary: 'Print a link with which a user can set a new password, once and within an hour.',
  parameters: [{ name: 'EMAIL', about: 'the user' }],
  run: async ({ arguments: [email = ''] }) =>
    await withDatabase(async (sql) => {
      const user = await findUserByEmail(sql, email);
      if (user === null) throw new CommandError('USER_NOT_FOUND', `no user has the e-mail address ${email}.`);
      const settings = readSettings();
      const masterKey = settings.secretKey ?? (await readMasterKey(settings.dataDir));
      if (masterKey === null) {
        throw new CommandError('NO_SECRET_KEY', 'the secret key of the server is unknown: set TANDEM_SECRET_KEY.');
      }
      const now = new Date();
      const expiresAt = new Date(now.getTime() + PASSWORD_RESET_MS);
      const token = passwordResetToken(user, { secret: derivedKey(masterKey, URL_SIGNING), expiresAt });
      await inTransaction(sql, async (tx) => {
        for (const workspaceId of await workspacesOf(tx, user.id)) {
          const target = { type: 'user', id: user.id };
          await auditOperator(tx, { workspaceId, action: 'user.reset_link_created', target, now });
        }
      });
      const origin = settings.publicUrl?.replace(/\/$/, '') ?? localUrl(settings);
      const url = `${origin}/auth/password/reset?token=${token}`;
      const text = fields([
        ['link', url],
        ['user', user.email],
        ['expires', expiresAt.toISOString()],
        ['', 'Send the link over a channel only the user can read. It works once.'],
      ]);
      return { data: { email: user.email, url, token, expires_at: expiresAt.toISOString() }, text };
    }),
});

const invite = defineAction({
  summary: 'Invite a person to make an account, or to join a workspace; prints a token that works once.',
  parameters: [{ name: 'EMAIL', about: 'e-mail address of the person' }],
  options: {
    workspace: { value: 'ID|NAME', about: 'the workspace to join (default: a workspace of their own)' },
    role: { value: 'ROLE', about: 'role in that workspace: owner, admin, developer (default), member or viewer' },
    hours: { value: 'N', about: 'hours until the token expires, 1 to 720 (default: 72)' },
  },
  async run({ values, arguments: [email = ''] }) {
    if (!/^[^\s@]+@[^\s@]+$/.test(email) || email.length > 254) throw new UsageError('EMAIL takes an e-mail address');
    const role = ROLES.find((each) => each === (values.role ?? 'developer'));
    if (role === undefined) throw new UsageError(`--role takes one of ${ROLES.join(', ')}`);
    if (values.role !== undefined && values.workspace === undefined) throw new UsageError('--role needs --workspace');
    const hours = /^\d{1,3}$/.test(values.hours ?? '72') ? Number(values.hours ?? 72) : 0;
    if (hours < 1 || hours > 720) throw new UsageError('--hours takes 1 to 720');
    return await withDatabase(async (sql) => {
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
      const { registration } = readSettings();
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

export const usersCommand: Command = { actions: { invite, 'reset-password': resetPassword } };
