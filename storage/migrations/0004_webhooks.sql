-- Subscriptions to events of a workspace, and the deliveries they cause beside those of call callbacks.

create table webhook_subscriptions (
  id uuid primary key,
  workspace_id uuid not null references workspaces (id),
  url text not null,
  events text[] not null check (cardinality(events) > 0),
  status text not null default 'active' check (status in ('active', 'disabled')),
  disabled_reason text check (disabled_reason in ('by_request', 'gone', 'failing')),
  -- When the first attempt failed that no success has followed; null while it works, or before anything was sent.
  failing_since timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz,
  check ((status = 'disabled') = (disabled_reason is not null))
);
create index webhook_subscriptions_workspace on webhook_subscriptions (workspace_id, created_at)
  where deleted_at is null;

-- The newest signs first; older ones sign beside it until they expire.
create table webhook_secrets (
  id bigint generated always as identity primary key,
  subscription_id uuid not null references webhook_subscriptions (id),
  secret_encrypted bytea not null,
  created_at timestamptz not null,
  -- Null for the newest.
  expires_at timestamptz
);
create index webhook_secrets_subscription on webhook_secrets (subscription_id, id desc);

-- A callback carries its call's secret; a webhook is signed with those its subscription has at the time of the attempt.
alter table deliveries
  add column kind text not null default 'callback' check (kind in ('callback', 'webhook')),
  add column subscription_id uuid references webhook_subscriptions (id),
  add column replay_of uuid references deliveries (id),
  alter column secret_encrypted drop not null,
  add constraint deliveries_of_kind check (
    (kind = 'webhook') = (subscription_id is not null) and (kind = 'callback') = (secret_encrypted is not null)
  );
create index deliveries_subscription on deliveries (subscription_id, created_at desc)
  where subscription_id is not null;
