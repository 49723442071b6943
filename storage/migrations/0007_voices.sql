-- Voices that workspaces made, what they were made of, and who agreed to that.

create table voices (
  id uuid primary key,
  workspace_id uuid not null references workspaces (id),
  tier text not null check (tier in ('quality', 'fast')),
  name text not null,
  description text,
  -- ISO 639.
  language text not null,
  labels jsonb not null,
  status text not null check (status in ('pending', 'processing', 'ready', 'failed')),
  -- Whose disk the samples are on.
  owner_node text not null,
  error_code text,
  -- For a person: what to do about it.
  error text,
  recipe jsonb,
  -- Fitted, not cloned.
  approximate boolean,
  -- Of the speaker.
  measures jsonb,
  -- Of the sentence that people hear who look at the voice; null until somebody does.
  sample_key text,
  created_by_user_id integer not null references users (id),
  created_at timestamptz not null,
  updated_at timestamptz not null,
  deleted_at timestamptz,
  check ((status = 'failed') = (error_code is not null)),
  check ((status = 'failed') = (error is not null)),
  check (deleted_at is not null or status <> 'ready' or (recipe is not null and approximate is not null))
);
create index voices_workspace on voices (workspace_id, created_at) where deleted_at is null;
create index voices_unfinished on voices (owner_node) where deleted_at is null and status in ('pending', 'processing');

-- Rows of a deleted voice stay until their files are gone.
create table voice_samples (
  id uuid primary key,
  voice_id uuid not null references voices (id),
  object_key text not null unique,
  duration_ms integer not null check (duration_ms > 0),
  bytes bigint not null,
  sha256 bytea not null,
  created_at timestamptz not null,
  unique (voice_id, sha256)
);

-- That the speaker of the samples agrees: who said so, when and from where. Kept when the voice is deleted.
create table voice_consents (
  id bigint generated always as identity primary key,
  voice_id uuid not null references voices (id),
  user_id integer not null references users (id),
  api_key_id integer references api_keys (id),
  address text not null,
  request_id text not null,
  samples integer not null,
  given_at timestamptz not null
);
create index voice_consents_voice on voice_consents (voice_id);
