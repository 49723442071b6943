-- What judges are asked, what they answered, and batches of calls that are judged one after another.

create table judge_rubrics (
  id uuid primary key,
  workspace_id uuid not null references workspaces (id),
  name text not null,
  description text,
  -- Id or alias, looked up when it is used; null: the usual one.
  model text,
  -- As it was written: jsonb would order questions and answers by the length of their names.
  questions json not null,
  question_count integer not null check (question_count > 0),
  -- Whether all of the workspace may use it.
  shared boolean not null,
  created_by_user_id integer not null references users (id),
  created_at timestamptz not null,
  updated_at timestamptz not null
);
create unique index judge_rubrics_name on judge_rubrics (workspace_id, name);

create table judge_batches (
  id uuid primary key,
  workspace_id uuid not null references workspaces (id),
  user_id integer not null references users (id),
  api_key_id integer references api_keys (id),
  -- The rubric as it was then: it may change or go meanwhile.
  rubric_id uuid not null,
  rubric_name text not null,
  questions json not null,
  model text,
  samples integer not null check (samples between 1 and 5),
  -- What was asked for, as the API shows it.
  filter json not null,
  status text not null check (status in ('pending', 'running', 'completed', 'stopped')),
  -- A code.
  stop_reason text,
  total integer not null check (total >= 0),
  -- So long nobody else takes it up; null: whoever comes first may.
  leased_until timestamptz,
  -- Of whoever has it: a lease that ran out and was taken again is another one.
  lease_id uuid,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  ended_at timestamptz,
  check ((status = 'stopped') = (stop_reason is not null)),
  check ((status in ('completed', 'stopped')) = (ended_at is not null))
);
create index judge_batches_user on judge_batches (workspace_id, user_id, created_at);
create index judge_batches_unfinished on judge_batches (workspace_id, created_at) where ended_at is null;

-- What the candidate said is not kept, but for the quotes in the results.
create table judge_evaluations (
  id uuid primary key,
  workspace_id uuid not null references workspaces (id),
  user_id integer not null references users (id),
  api_key_id integer references api_keys (id),
  -- Null: it was asked with questions of its own. The rubric may be gone.
  rubric_id uuid,
  batch_id uuid references judge_batches (id),
  call_id text references calls (call_id),
  state text not null check (state in ('judging', 'completed', 'failed')),
  -- A code; nothing was charged.
  error text,
  -- Counts from 1; one whose judge was lost is begun again.
  attempt integer not null check (attempt > 0),
  -- What is set aside while it is judged; null where it costs nothing.
  hold_id uuid references holds (id),
  -- The versioned id.
  model text not null,
  -- Orders the answers as they were shown.
  seed integer not null check (seed >= 0),
  samples integer not null check (samples between 1 and 5),
  metadata json,
  results json,
  summary text,
  prompt_tokens integer,
  completion_tokens integer,
  cost_nano bigint,
  latency_ms integer,
  -- The process that judges: after its death nobody does.
  owner_node text not null,
  owner_boot text not null,
  created_at timestamptz not null,
  ended_at timestamptz,
  check ((state = 'judging') = (ended_at is null)),
  check ((state = 'failed') = (error is not null)),
  check (state <> 'completed' or (results is not null and summary is not null and prompt_tokens is not null
    and completion_tokens is not null and cost_nano is not null and latency_ms is not null))
);
create index judge_evaluations_batch on judge_evaluations (batch_id) where batch_id is not null;
create index judge_evaluations_live_owner on judge_evaluations (owner_node) where state = 'judging';

create table judge_batch_items (
  batch_id uuid not null references judge_batches (id),
  call_id text not null references calls (call_id),
  position integer not null,
  -- Of the evaluation that is or will be made of it: however often it is begun, it is one.
  evaluation_id uuid not null unique,
  status text not null check (status in ('pending', 'judged', 'failed')),
  -- A code.
  error text,
  ended_at timestamptz,
  primary key (batch_id, call_id),
  unique (batch_id, position),
  check ((status = 'failed') = (error is not null)),
  check ((status = 'pending') = (ended_at is null))
);
