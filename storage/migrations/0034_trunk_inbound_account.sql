-- The account that inbound calls prove when they do not come from an address of the trunk.
alter table trunks
  add column inbound_username text,
  add column inbound_password_encrypted bytea,
  add constraint trunks_inbound_account check ((inbound_username is null) = (inbound_password_encrypted is null));
create index trunks_with_inbound_account on trunks (id) where inbound_username is not null;
