-- The SIP messages of calls, for a few days. Their secrets are masked before they come here.
create table sip_messages (
  id bigint generated always as identity primary key,
  call_id text not null references calls (call_id) on delete cascade,
  leg text not null,
  at timestamptz not null,
  direction text not null check (direction in ('sent', 'received')),
  transport text not null,
  sip_call_id text not null,
  local_host text,
  local_port integer,
  remote_host text,
  remote_port integer,
  message bytea not null,
  -- The message is cut off, and later ones of the call are not kept: the call had too many.
  is_cut boolean not null
);
create index sip_messages_of_call on sip_messages (call_id, at, id);
create index sip_messages_at on sip_messages (at);
