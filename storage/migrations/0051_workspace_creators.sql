-- The quota of workspaces counts those that a user created: any owner can make another user an owner, unasked.
alter table workspaces add column created_by_user_id integer references users (id);
update workspaces set created_by_user_id = owner_user_id;
create index workspaces_created_by_user_id on workspaces (created_by_user_id);
