-- What was said in calls that were placed with `transcribe: true`.

alter table calls add column transcribe_requested boolean not null default false;

create table call_transcripts (
  call_id text primary key references calls (call_id),
  status text not null check (status in ('in_progress', 'completed', 'failed')),
  -- Why it failed; what was understood before is kept.
  error text,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  check ((status = 'failed') = (error is not null))
);

create table call_transcript_segments (
  call_id text not null references call_transcripts (call_id),
  -- In the order in which they were understood, from 1.
  sequence integer not null,
  -- Of the event that told it; null for what was understood only after the last event of the call.
  event_sequence integer,
  leg text not null check (leg in ('agent', 'customer')),
  text text not null,
  language text not null,
  -- Since the legs were bridged.
  start_ms integer not null,
  end_ms integer not null check (end_ms >= start_ms),
  confidence double precision,
  words jsonb not null,
  primary key (call_id, sequence),
  unique (call_id, event_sequence)
);
