-- What an event tells beyond the common columns, such as the digit of dtmf.received.
alter table call_events add column data jsonb;
