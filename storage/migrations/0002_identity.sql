-- Sessions, the keys that sign their tokens, what users agreed to, and the audit log.

alter table users
  add column onboarded_at timestamptz,
  add column default_voice_id text,
  add column marketing_consent boolean not null default false,
  -- When and where the user last said yes or no; null while nobody asked.
  add column consent_timestamp timestamptz,
  add column consent_source text;

-- One row for each token that was handed out; its id is the `jti`.
create table sessions (
  id uuid primary key,
  user_id integer not null references users (id),
  created_at timestamptz not null,
  expires_at timestamptz not null,
  revoked_at timestamptz
);
create index sessions_user on sessions (user_id);
create index sessions_expiry on sessions (expires_at);

create table signing_keys (
  -- The `kid` of tokens.
  id text primary key,
  algorithm text not null check (algorithm = 'EdDSA'),
  -- A JWK as JSON text, sealed by the secret box.
  private_key_encrypted bytea not null,
  public_key jsonb not null,
  created_at timestamptz not null,
  -- Since then it signs nothing; what it signed before is good until it expires.
  retired_at timestamptz
);
create unique index signing_keys_active on signing_keys ((true)) where retired_at is null;

create table audit_log (
  id bigint generated always as identity primary key,
  workspace_id uuid not null references workspaces (id),
  at timestamptz not null,
  -- Null when the platform itself acted.
  actor_user_id integer references users (id),
  actor_api_key_id integer references api_keys (id),
  action text not null,
  target_type text not null,
  target_id text not null,
  details jsonb not null default '{}',
  request_id text
);
create index audit_log_workspace on audit_log (workspace_id, id);
create trigger audit_log_append_only before update or delete or truncate on audit_log
  for each statement execute function refuse_change();
