import { Type } from 'typebox';

/** One address, no display name. Unusual ones that no mail server takes are refused. */
export const EmailSchema = Type.String({
  maxLength: 254,
  pattern: "^[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?$",
  description: 'An e-mail address. Upper and lower case are the same.',
  examples: ['ada@example.com'],
});

export const WorkspaceNameSchema = Type.String({
  minLength: 1,
  maxLength: 100,
  pattern: '^[^\\u0000]*[^\\s\\u0000][^\\u0000]*$',
  description: 'Up to 100 characters.',
  examples: ['Acme'],
});

export const RoleSchema = Type.Enum(['owner', 'admin', 'developer', 'member', 'viewer'], {
  description: 'Viewers look; members and developers act too; admins manage members and trunks; owners also see money.',
  examples: ['developer'],
});
