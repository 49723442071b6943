-- Limits of a workspace on whom it may call, when, how often and for how much, and its do-not-call list.

create table calling_rules (
  workspace_id uuid primary key references workspaces (id),
  -- Per day of the time zone below. Null: no cap of its own.
  daily_spend_cap_nano bigint check (daily_spend_cap_nano >= 0),
  -- E.164 prefixes with the plus sign.
  blocked_prefixes text[] not null default '{}',
  -- [{"prefix": "+91", "callsPerMinute": 30}]
  destination_limits jsonb not null default '[]',
  -- {"timeZone": "Asia/Kolkata", "start": "09:00", "end": "21:00"}. Null: any time.
  calling_hours jsonb,
  updated_at timestamptz not null
);

create table do_not_call (
  workspace_id uuid not null references workspaces (id),
  e164 text not null check (e164 ~ '^\+[1-9][0-9]{1,14}$'),
  created_at timestamptz not null,
  primary key (workspace_id, e164)
);
