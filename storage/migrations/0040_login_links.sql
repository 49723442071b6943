-- Links that log a user in once, and what the list of sessions shows of each.

create table login_links (
  id uuid primary key,
  user_id integer not null references users (id),
  -- SHA-256 of the token, which is shown once.
  token_hash bytea not null unique,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  used_at timestamptz
);
create index login_links_user on login_links (user_id);

alter table sessions
  -- To the minute. Null until the first request after the login.
  add column last_used_at timestamptz,
  -- Of the client that logged in. Null where it is unknown, or an older node opened the session.
  add column user_agent text,
  add column address text;
