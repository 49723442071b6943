-- Several gateways of one trunk, and what is known of each. Empty: only sip_uri, which is always the first.
alter table trunks
  add column gateways jsonb not null default '[]' check (jsonb_typeof(gateways) = 'array'),
  -- One object for each gateway that was checked, by its address.
  add column gateway_health jsonb not null default '[]' check (jsonb_typeof(gateway_health) = 'array'),
  drop column answers_options;
