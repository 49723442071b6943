-- Requests that were sent with an Idempotency-Key, and their responses (http/idempotency.ts).
create table idempotent_requests (
  -- Also names what the request creates, so that a repetition after a crash meets what the first attempt left.
  id uuid primary key,
  workspace_id uuid references workspaces (id) on delete cascade,
  -- The workspace and the API key or user, the operation, and the SHA-256 of the key that the client chose.
  owner text not null,
  operation text not null,
  key_hash bytea not null,
  -- The attempt that runs now. Null: none, so the next request runs.
  attempt uuid,
  -- An attempt whose process does not renew this has died.
  leased_until timestamptz,
  is_done boolean not null default false,
  -- Fingerprint of the request and, when it is done, the response.
  record_encrypted bytea not null,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  unique (owner, operation, key_hash),
  check ((attempt is null) = (leased_until is null)),
  check (not is_done or attempt is null)
);
create index idempotent_requests_expiry on idempotent_requests (expires_at);
