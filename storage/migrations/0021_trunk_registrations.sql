-- Which server keeps a trunk registered at its carrier, and how that goes. A row is gone while none does.
create table trunk_registrations (
  trunk_id uuid primary key references trunks (id),
  -- The boot of the server that registers it until then; another one may take it over afterwards.
  server text not null,
  leased_until timestamptz not null,
  state text not null default 'registering' check (state in ('registering', 'registered', 'failed')),
  registered_at timestamptz,
  expires_at timestamptz,
  last_error text
);
create index trunk_registrations_server on trunk_registrations (server);
