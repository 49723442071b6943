-- The legs of a call as its event log tells them, and what those cost that were added to the talk.
alter table calls
  add column legs jsonb not null default '[]',
  add column leg_seconds integer,
  add column legs_cost_nano bigint;
