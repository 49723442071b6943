-- Texts that were charged for and are, or were, spoken. What they say is not kept.

create table tts_streams (
  id text primary key,
  workspace_id uuid not null references workspaces (id),
  user_id integer references users (id),
  api_key_id integer references api_keys (id),
  voice_id text not null,
  -- That were charged for.
  characters integer not null check (characters > 0),
  -- abandoned: the listener left of their own accord; what was charged was given back if nothing had been heard.
  state text not null check (state in ('speaking', 'completed', 'failed', 'abandoned')),
  -- A code; what was charged was given back.
  error text,
  duration_ms integer,
  -- Where its audio is or was to be stored, until that is deleted; null when nobody asked for it.
  audio_key text,
  -- When it is to be deleted; null while it is spoken.
  audio_expires_at timestamptz,
  -- The process that speaks it: after its death nobody does.
  owner_node text not null,
  owner_boot text not null,
  created_at timestamptz not null,
  ended_at timestamptz,
  check ((state = 'failed') = (error is not null)),
  check ((state = 'speaking') = (ended_at is null)),
  check (state <> 'completed' or duration_ms is not null)
);
create index tts_streams_live_owner on tts_streams (owner_node) where state = 'speaking';
create index tts_streams_kept_audio on tts_streams (audio_expires_at) where audio_key is not null;
