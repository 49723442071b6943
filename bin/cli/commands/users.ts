import { readMasterKey } from '../../../storage/data-folder.ts';
import { inTransaction } from '../../../storage/database.ts';
import { PASSWORD_RESET_MS, passwordResetToken, workspacesOf } from '../../../storage/queries/password-resets.ts';
import { findUserByEmail } from '../../../storage/queries/workspaces.ts';
import { derivedKey, URL_SIGNING } from '../../../storage/secrets.ts';
import { localUrl } from '../api-access.ts';
import { type Command, CommandError, defineAction } from '../command.ts';
import { auditOperator, withDatabase } from '../operator-database.ts';
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

export const usersCommand: Command = { actions: { 'reset-password': resetPassword } };
