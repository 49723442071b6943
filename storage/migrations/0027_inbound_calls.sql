-- Calls that come in over a trunk, and what becomes of them by the number that was called.
alter table calls
  add column direction text not null default 'outbound' check (direction in ('outbound', 'inbound'));
alter table calls
  drop constraint calls_placed_via_check,
  add constraint calls_placed_via_check check (placed_via in ('api_key', 'session', 'inbound')) not valid;

-- Null: calls to the number are refused.
alter table numbers add column inbound jsonb;
