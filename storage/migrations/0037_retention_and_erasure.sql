-- Deletion: of old deliveries and events, of calls, and of the data about a phone number.

create index deliveries_replay_of on deliveries (replay_of) where replay_of is not null;
-- Rows come in the order of their times, so these stay small.
create index deliveries_created on deliveries using brin (created_at);
create index call_events_at on call_events using brin (at);

-- Recordings of deleted calls, until their objects and files are gone for good.
create table erased_recordings (
  id uuid primary key,
  workspace_id uuid not null references workspaces (id),
  -- Null: the recording was not stored.
  object_key text,
  -- The node that ran the call: unless objects are in a bucket, they are on its disk.
  owner_node text not null,
  erased_at timestamptz not null,
  -- When they were deleted first.
  purged_at timestamptz
);
create index erased_recordings_workspace on erased_recordings (workspace_id);

-- Requests to delete the data about a phone number.
create table erasures (
  id uuid primary key,
  workspace_id uuid not null references workspaces (id),
  -- Null once nothing is left to delete.
  e164 text,
  last4 text not null,
  status text not null check (status in ('running', 'completed')),
  -- Number of deleted rows, by kind.
  deleted jsonb not null,
  -- A node works on it until then.
  leased_until timestamptz,
  created_at timestamptz not null,
  completed_at timestamptz,
  check ((status = 'running') = (e164 is not null)),
  check ((status = 'running') = (completed_at is null))
);
create index erasures_workspace on erasures (workspace_id, created_at);
create index erasures_running on erasures (created_at) where status = 'running';
