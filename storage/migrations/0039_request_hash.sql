-- SHA-256 of the request that placed the call, to compare with a request that repeats its reference. Null: not placed by
-- a request, or by an earlier version.
alter table calls add column request_hash bytea;
