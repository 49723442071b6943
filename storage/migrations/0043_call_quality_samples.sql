-- Media quality of the legs of calls over time.
create table call_quality_samples (
  call_id text not null references calls (call_id) on delete cascade,
  leg text not null,
  -- End of the sample. It begins where the one before ended.
  at timestamptz not null,
  packets_received integer not null,
  packets_lost integer not null,
  jitter_ms real not null,
  -- Null: the peer sends no RTCP.
  round_trip_ms real,
  -- Null: nothing was received.
  mos real,
  primary key (call_id, leg, at)
);
-- Rows come in the order of their times, so this stays small.
create index call_quality_samples_at on call_quality_samples using brin (at);
