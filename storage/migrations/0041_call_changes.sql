-- The transaction that stored an event, so that a stream finds every event that it has not seen, in whatever order the
-- transactions commit. Null: stored by an earlier version.
alter table call_events add column transaction_id xid8;
alter table call_events alter column transaction_id set default pg_current_xact_id();
create index call_events_transaction on call_events (transaction_id) where transaction_id is not null;

create index calls_live_workspace on calls (workspace_id, created_at desc, call_id)
  where state in ('pending', 'initiated', 'bridged', 'unknown');
