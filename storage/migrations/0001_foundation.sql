-- Workspaces and who may act in them; trunks and numbers; calls with their event log; callbacks; the wallet ledger.
-- Money is integer nano-dollars (1e-9 USD). Every `*_nano` column is that.

create table workspaces (
  id uuid primary key,
  name text not null,
  plan text not null default 'free' check (plan in ('free', 'starter', 'pro', 'enterprise')),
  owner_user_id integer not null,
  created_at timestamptz not null
);

create table users (
  id integer generated always as identity primary key,
  email text not null check (email = lower(email)),
  password_hash text,
  name text not null default '',
  created_at timestamptz not null
);
create unique index users_email on users (email);

alter table workspaces add constraint workspaces_owner foreign key (owner_user_id) references users (id);

create table memberships (
  workspace_id uuid not null references workspaces (id),
  user_id integer not null references users (id),
  role text not null check (role in ('owner', 'admin', 'developer', 'member', 'viewer')),
  created_at timestamptz not null,
  primary key (workspace_id, user_id)
);
create index memberships_user on memberships (user_id);

create table api_keys (
  id integer generated always as identity primary key,
  workspace_id uuid not null references workspaces (id),
  created_by_user_id integer not null references users (id),
  name text not null,
  prefix text not null,
  last4 text not null,
  -- SHA-256 of the whole key. The key itself is shown once and kept nowhere.
  key_hash bytea not null unique check (octet_length(key_hash) = 32),
  scopes text[] not null default '{}',
  created_at timestamptz not null,
  last_used_at timestamptz,
  expires_at timestamptz,
  revoked_at timestamptz
);
create index api_keys_workspace on api_keys (workspace_id, id);

-- Trunks and numbers ------------------------------------------------------------------------------------------------

create table trunks (
  id uuid primary key,
  -- The workspace that configured it; null for a trunk of the operator.
  owner_workspace_id uuid references workspaces (id),
  name text not null,
  sip_uri text not null,
  transport text not null default 'udp' check (transport in ('udp', 'tcp', 'tls')),
  username text,
  password_encrypted bytea,
  register boolean not null default false,
  codecs text[] not null default '{PCMU,PCMA}',
  channels integer not null default 10 check (channels >= 0),
  -- E.164 prefixes with the plus sign; empty allows everything.
  allowed_prefixes text[] not null default '{}',
  status text not null default 'active' check (status in ('active', 'disabled')),
  default_caller_id text,
  price_per_minute_nano bigint not null default 0 check (price_per_minute_nano >= 0),
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz
);

-- Which workspaces may call over a trunk. The caller ID a workspace saved is its own, not the trunk's.
create table trunk_workspaces (
  trunk_id uuid not null references trunks (id),
  workspace_id uuid not null references workspaces (id),
  default_caller_id text,
  created_at timestamptz not null,
  primary key (trunk_id, workspace_id)
);
create index trunk_workspaces_workspace on trunk_workspaces (workspace_id);

create table numbers (
  e164 text primary key check (e164 ~ '^\+[1-9][0-9]{1,14}$'),
  trunk_id uuid not null references trunks (id),
  -- Null while in the inventory.
  workspace_id uuid references workspaces (id),
  status text not null default 'available' check (status in ('available', 'assigned', 'reserved')),
  monthly_price_nano bigint not null default 0 check (monthly_price_nano >= 0),
  created_at timestamptz not null,
  rented_at timestamptz,
  released_at timestamptz,
  check ((status = 'assigned') = (workspace_id is not null))
);
create index numbers_trunk on numbers (trunk_id, status, e164);
create index numbers_workspace on numbers (workspace_id) where workspace_id is not null;

-- The wallet --------------------------------------------------------------------------------------------------------

-- Four accounts a workspace. `wallet` is what can be spent, `held` what open holds have set aside, `revenue` what was
-- charged, `funding` where top-ups come from (it goes negative). The checks make overdrawing impossible.
create table accounts (
  id bigint generated always as identity primary key,
  workspace_id uuid not null references workspaces (id),
  kind text not null check (kind in ('wallet', 'held', 'revenue', 'funding')),
  -- Kept by the trigger on postings: always the sum of this account's postings.
  balance_nano bigint not null default 0,
  unique (workspace_id, kind),
  constraint accounts_never_overdrawn check (kind not in ('wallet', 'held') or balance_nano >= 0)
);

create table holds (
  id uuid primary key,
  workspace_id uuid not null references workspaces (id),
  operation_key text not null unique,
  call_id text,
  amount_nano bigint not null check (amount_nano >= 0),
  charged_nano bigint check (charged_nano >= 0),
  status text not null default 'open' check (status in ('open', 'settled', 'voided')),
  created_at timestamptz not null,
  closed_at timestamptz,
  check ((status = 'open') = (closed_at is null))
);
create index holds_open on holds (workspace_id) where status = 'open';

create table entries (
  id uuid primary key,
  position bigint generated always as identity unique,
  -- One operation, one entry, however often it is tried.
  operation_key text not null unique,
  kind text not null check (kind in ('top_up', 'hold', 'hold_grow', 'settle', 'void', 'refund')),
  workspace_id uuid not null references workspaces (id),
  hold_id uuid references holds (id),
  call_id text,
  -- A charge is refunded at most once.
  reverses_id uuid unique references entries (id),
  requested_nano bigint not null,
  result_nano bigint not null,
  -- Wallet plus held, around this entry.
  balance_before_nano bigint not null,
  balance_after_nano bigint not null,
  payment_type text check (payment_type in ('one_time', 'subscription', 'admin_bonus')),
  description text not null default '',
  created_at timestamptz not null
);
create index entries_workspace on entries (workspace_id, position);
create index entries_call on entries (call_id) where call_id is not null;

create table postings (
  entry_id uuid not null references entries (id),
  account_id bigint not null references accounts (id),
  amount_nano bigint not null check (amount_nano <> 0),
  primary key (entry_id, account_id)
);
create index postings_account on postings (account_id);

create function open_accounts() returns trigger language plpgsql as $$
begin
  insert into accounts (workspace_id, kind)
  values (new.id, 'wallet'), (new.id, 'held'), (new.id, 'revenue'), (new.id, 'funding');
  return null;
end $$;
create trigger workspaces_open_accounts after insert on workspaces for each row execute function open_accounts();

create function apply_posting() returns trigger language plpgsql as $$
begin
  update accounts set balance_nano = balance_nano + new.amount_nano where id = new.account_id;
  return null;
end $$;
create trigger postings_apply after insert on postings for each row execute function apply_posting();

create function require_balanced_entry() returns trigger language plpgsql as $$
begin
  if (select coalesce(sum(amount_nano), 0) from postings where entry_id = new.entry_id) <> 0 then
    raise exception 'ledger entry % does not sum to zero', new.entry_id using errcode = 'check_violation';
  end if;
  return null;
end $$;
create constraint trigger postings_balanced after insert on postings
  deferrable initially deferred for each row execute function require_balanced_entry();

create function refuse_change() returns trigger language plpgsql as $$
begin
  raise exception '% is append-only', tg_table_name using errcode = 'restrict_violation';
end $$;
create trigger entries_append_only before update or delete or truncate on entries
  for each statement execute function refuse_change();
create trigger postings_append_only before update or delete or truncate on postings
  for each statement execute function refuse_change();

-- Calls -------------------------------------------------------------------------------------------------------------

create table calls (
  call_id text primary key,
  workspace_id uuid not null references workspaces (id),
  reference_id text not null,
  trunk_id uuid not null references trunks (id),
  did text not null,
  agent_number text not null,
  customer_number text not null,
  state text not null
    check (state in ('pending', 'initiated', 'bridged', 'completed', 'failed', 'rejected', 'unknown')),
  -- The sequence of the latest row of call_events.
  seq integer not null,
  terminal_event text
    check (terminal_event in ('call.completed', 'call.not_answered', 'call.failed', 'call.temporaryfailed')),
  hangup_cause text,
  leg text check (leg in ('agent', 'customer')),
  error text,
  error_detail text,
  start_time timestamptz,
  answer_time timestamptz,
  end_time timestamptz,
  talk_seconds integer check (talk_seconds >= 0),
  total_seconds integer check (total_seconds >= 0),
  -- json, not jsonb: the client gets back exactly what it sent, key order and repeated keys included.
  metadata json,
  record_requested boolean not null default false,
  recording_id uuid,
  recording_status text,
  quality jsonb,
  callback_url text,
  callback_secret_encrypted bytea,
  callback_secret_last4 text,
  agent_ring_timeout_s integer not null,
  customer_ring_timeout_s integer not null,
  max_duration_s integer not null,
  price_per_minute_nano bigint not null,
  hold_id uuid references holds (id),
  cost_nano bigint,
  billing_status text check (billing_status in ('billed', 'failed')),
  placed_via text not null check (placed_via in ('api_key', 'session')),
  api_key_id integer references api_keys (id),
  api_key_name text,
  created_by_user_id integer references users (id),
  -- The node that runs the call, and which of its boots: another boot of the same node means it was lost.
  owner_node text not null,
  owner_boot text not null,
  created_at timestamptz not null
);
-- A refused admission gives its reference back; any other call keeps it for ever.
create unique index calls_reference on calls (trunk_id, reference_id) where state <> 'rejected';
create index calls_workspace_reference on calls (workspace_id, reference_id);
create index calls_workspace_created on calls (workspace_id, created_at desc, call_id);
create index calls_recording on calls (recording_id) where recording_id is not null;
create index calls_live_trunk on calls (trunk_id) where state in ('pending', 'initiated', 'bridged', 'unknown');
create index calls_live_did on calls (did) where state in ('pending', 'initiated', 'bridged', 'unknown');
create index calls_live_owner on calls (owner_node) where state in ('pending', 'initiated', 'bridged', 'unknown');

create table call_events (
  call_id text not null references calls (call_id),
  sequence integer not null,
  event_id uuid not null unique default gen_random_uuid(),
  event text not null,
  state text not null,
  leg text,
  sip_status integer,
  hangup_cause text,
  detail text,
  at timestamptz not null,
  primary key (call_id, sequence)
);

create table recordings (
  id uuid primary key,
  call_id text not null references calls (call_id),
  workspace_id uuid not null references workspaces (id),
  status text not null check (status in ('recording', 'processing', 'uploaded', 'failed')),
  object_key text,
  format text not null default 'wav',
  size_bytes bigint,
  duration_ms bigint,
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create index recordings_call on recordings (call_id);

-- Callbacks ---------------------------------------------------------------------------------------------------------

create table deliveries (
  id uuid primary key,
  workspace_id uuid not null references workspaces (id),
  call_id text references calls (call_id),
  event_sequence integer,
  event text not null,
  -- Stable over retries: receivers drop repeats by it.
  event_id text not null,
  url text not null,
  -- Exactly the bytes that are signed and sent.
  body text not null,
  secret_encrypted bytea not null,
  status text not null default 'pending' check (status in ('pending', 'delivered', 'failed')),
  attempts integer not null default 0,
  last_http_status integer,
  last_error text,
  -- When the next attempt is due; null once the outcome is final.
  next_attempt_at timestamptz,
  -- Somebody is attempting it until then.
  leased_until timestamptz,
  created_at timestamptz not null,
  delivered_at timestamptz,
  check ((status = 'pending') = (next_attempt_at is not null))
);
create index deliveries_due on deliveries (next_attempt_at) where status = 'pending';
create index deliveries_call on deliveries (call_id, event_sequence);
create index deliveries_workspace on deliveries (workspace_id, created_at desc);

create table delivery_attempts (
  delivery_id uuid not null references deliveries (id),
  attempt integer not null,
  http_status integer,
  error text,
  started_at timestamptz not null,
  duration_ms integer not null,
  primary key (delivery_id, attempt)
);
