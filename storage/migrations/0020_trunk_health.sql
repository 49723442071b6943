-- Whether and how often a trunk is probed, and what is known of its carrier: the row is shared by all servers.
alter table trunks
  add column health_mode text not null default 'options' check (health_mode in ('options', 'none')),
  add column health_interval_s integer not null default 30 check (health_interval_s between 10 and 3600),
  add column reachability text not null default 'unknown' check (reachability in ('unknown', 'up', 'down')),
  -- Null until the carrier was seen up or down.
  add column reachability_since timestamptz,
  add column reachability_reason text not null default 'not_checked' check (reachability_reason in (
    'not_checked', 'options_not_answered', 'options_answered', 'call_answered', 'register_answered',
    'no_response', 'transport_error'
  )),
  -- Null until the carrier answered OPTIONS, or answered a call after it had ignored them.
  add column answers_options boolean;
