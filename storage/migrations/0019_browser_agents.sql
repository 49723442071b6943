-- The agent of a call is a phone, named by its number, or the browser of a user.
alter table calls
  alter column agent_number drop not null,
  add column agent_user_id integer;
