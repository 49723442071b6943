-- The servers of an installation. A server owns its calls as long as it renews its lease; then another one takes them over.
create table nodes (
  node text primary key,
  -- The boot that holds the lease. Calls and sessions name it as their owner, which fences off boots that lost theirs.
  boot text not null,
  -- By the clock of the database.
  lease_until timestamptz not null,
  -- By the clock of the node: the last time at which this boot, or the one before it, is known to have lived.
  seen_at timestamptz,
  is_draining boolean not null default false,
  live_calls integer not null default 0,
  -- Of the media workers, 1 when they are fully loaded.
  media_load real not null default 0,
  can_place_calls boolean not null default false,
  recordings_dir text not null,
  -- The node that settles what this boot left, and when it had done so.
  taken_over_by text,
  settled_at timestamptz,
  started_at timestamptz not null
);
create index nodes_lease on nodes (lease_until) where settled_at is null;

-- The node on whose disk the recording grows. A call can change its owner; its file stays where it is.
alter table recordings add column node text;
update recordings r set node = c.owner_node from calls c where c.call_id = r.call_id;

-- When the owner of a call that was lost is known to have lived last: what the call is billed until.
alter table calls add column owner_seen_at timestamptz;
