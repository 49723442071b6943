-- Calls that verify a claim: a call over a trunk of the operator presses a code, which has to be heard on the trunk that
-- claims the number.
create table number_verifications (
  id uuid primary key,
  e164 text not null,
  trunk_id uuid not null references trunks (id),
  workspace_id uuid not null references workspaces (id),
  -- Null once it has ended.
  code text,
  -- Inbound calls that were listened to.
  calls_heard integer not null default 0,
  status text not null check (status in ('calling', 'verified', 'failed')),
  failure text check (failure in ('not_answered', 'busy', 'refused', 'code_not_heard', 'interrupted')),
  created_at timestamptz not null,
  ended_at timestamptz,
  check ((status = 'calling') = (ended_at is null)),
  check ((status = 'failed') = (failure is not null))
);
create unique index number_verifications_calling on number_verifications (e164) where status = 'calling';
create index number_verifications_number on number_verifications (e164, created_at);
create index number_verifications_workspace on number_verifications (workspace_id, created_at);
