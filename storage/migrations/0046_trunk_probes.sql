-- The last OPTIONS requests to the gateways of trunks, by any node.
create table trunk_probes (
  id bigint generated always as identity primary key,
  trunk_id uuid not null references trunks (id),
  node text not null,
  sip_uri text not null,
  transport text not null,
  -- When it was answered, or given up.
  at timestamptz not null,
  -- Null: no answer came.
  sip_status integer,
  round_trip_ms real,
  -- Why no answer came.
  silence text check (silence in ('no_response', 'transport_error')),
  check ((sip_status is null) = (round_trip_ms is null))
);
create index trunk_probes_trunk on trunk_probes (trunk_id, id);
