-- Invitations to join a workspace, or to make an account with a workspace of its own. A token works once.

create table invitations (
  id uuid primary key,
  -- The workspace to join; of an invitation to make an account, the workspace of the operator.
  workspace_id uuid not null references workspaces (id),
  kind text not null check (kind in ('member', 'account')),
  -- In the workspace. Null for an account, which has a workspace of its own.
  role text check (role in ('owner', 'admin', 'developer', 'member', 'viewer')),
  -- In lower case. Only this address may use the token.
  email text not null,
  -- SHA-256 of the token, which is shown once.
  token_hash bytea not null unique,
  -- Null when the operator invited from the command line.
  created_by_user_id integer references users (id),
  created_at timestamptz not null,
  expires_at timestamptz not null,
  accepted_at timestamptz,
  accepted_by_user_id integer references users (id),
  revoked_at timestamptz,
  check ((kind = 'member') = (role is not null))
);
create index invitations_workspace on invitations (workspace_id, created_at, id);

-- The oldest workspace is the operator's.
create index workspaces_age on workspaces (created_at, id);
