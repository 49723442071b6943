-- What ends the legs of a live call from another process, by leg: after a crash, the peers get a BYE or CANCEL. JSON objects
-- as sip/sip-gateway.ts defines them. Null before the first leg and once the call has ended.
alter table calls add column leg_handles jsonb;
