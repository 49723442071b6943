-- Chats and what was said in them, and every completion that was asked for, with what it held and came to.

-- Of one user in one workspace.
create table chats (
  id text primary key,
  workspace_id uuid not null references workspaces (id),
  user_id integer not null references users (id),
  -- The beginning of what was said first.
  title text not null,
  -- Also where the next message goes.
  message_count integer not null default 0 check (message_count >= 0),
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create index chats_owner on chats (workspace_id, user_id, updated_at desc, id);

create table chat_messages (
  chat_id text not null references chats (id) on delete cascade,
  position integer not null check (position >= 0),
  role text not null check (role in ('system', 'user', 'assistant', 'tool')),
  -- Null where the assistant only called tools.
  content text,
  -- [{id, name, arguments}]; arguments are text that the model wrote.
  tool_calls jsonb,
  -- Whose result this is.
  tool_call_id text,
  -- Who wrote it, of the assistant's.
  model text,
  -- Counted by us: what it takes of a context.
  tokens integer not null check (tokens >= 0),
  created_at timestamptz not null,
  primary key (chat_id, position),
  check ((role = 'tool') = (tool_call_id is not null)),
  check (content is not null or tool_calls is not null)
);

create table completions (
  id text primary key,
  workspace_id uuid not null references workspaces (id),
  user_id integer not null references users (id),
  api_key_id integer references api_keys (id),
  -- The chat it continues or begins, which may not be there yet, or no more.
  chat_id text,
  operation text not null check (operation in ('chat', 'correct')),
  -- abandoned: the client left of their own accord, and paid for what was produced by then.
  state text not null check (state in ('generating', 'completed', 'failed', 'abandoned')),
  -- What was set aside for it; null where tokens cost nothing.
  hold_id uuid references holds (id),
  unit_price_nano bigint not null check (unit_price_nano >= 0),
  model text not null,
  prompt_tokens integer check (prompt_tokens >= 0),
  completion_tokens integer check (completion_tokens >= 0),
  -- A code; nothing was charged.
  error text,
  -- The process that generates it: after its death nobody does.
  owner_node text not null,
  owner_boot text not null,
  created_at timestamptz not null,
  ended_at timestamptz,
  check ((state = 'failed') = (error is not null)),
  check ((state = 'generating') = (ended_at is null)),
  check (state in ('generating', 'failed') or (prompt_tokens is not null and completion_tokens is not null))
);
create index completions_live_owner on completions (owner_node) where state = 'generating';
create index completions_live_chat on completions (chat_id) where state = 'generating' and chat_id is not null;
