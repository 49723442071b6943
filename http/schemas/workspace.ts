import { Type } from 'typebox';

/** One address without display name. Rejects unusual forms that no mail server accepts. */
export const EmailSchema = Type.String({
  maxLength: 254,
  pattern: "^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?$",
  description: 'E-mail address. Case-insensitive.',
  examples: ['ada@example.com'],
});

export const WorkspaceNameSchema = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: '^[^\\u0000]*[^\\s\\u0000][^\\u0000]*$',
  description: 'Display name, up to 100 characters.',
  examples: ['Acme'],
});

export const RoleSchema = Type.Enum(['owner', 'admin', 'developer', 'member', 'viewer'], {
  description:
    '`viewer`: read only. `member`, `developer`: read and write. `admin`: also manages members and trunks. `owner`: also has access to billing.',
  examples: ['developer'],
});

/** Required with a session token; an API key implies its workspace. */
export const WorkspaceIdSchema = Type.String({
  format: 'uuid',
  description: 'Workspace to act on. Required with a session token; an API key implies its own workspace.',
});
