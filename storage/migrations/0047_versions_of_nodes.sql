-- The version that a node runs. Null: one from before versions were stored.
alter table nodes add column version text;
