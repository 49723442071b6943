-- A number that a trunk lists is a claim until the operator, or an inbound call over that trunk, verifies it. Several
-- trunks can claim a number; one can have it verified.

alter table numbers
  add column verified_at timestamptz,
  add column verified_by text check (verified_by in ('operator', 'inbound_call'));
-- One trunk had each number so far. What is rented stays in use; what a tenant only listed is a claim.
update numbers n set verified_at = n.created_at, verified_by = 'operator' from trunks t
where t.id = n.trunk_id and (n.status <> 'available' or t.owner_workspace_id is null
  or t.owner_workspace_id = (select id from workspaces order by created_at, id limit 1));
alter table numbers drop constraint numbers_pkey;
alter table numbers add primary key (e164, trunk_id);
create unique index numbers_verified on numbers (e164) where verified_at is not null;
alter table numbers add constraint numbers_rented_verified check (status = 'available' or verified_at is not null);
