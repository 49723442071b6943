-- Retention of recordings in days, and the tone that both parties hear when a recording starts.
alter table workspaces
  add column recording_retention_days integer check (recording_retention_days between 1 and 3650),
  add column recording_beep boolean not null default false;
alter table calls add column recording_beep boolean not null default false;

alter table recordings drop constraint recordings_status_check;
alter table recordings add constraint recordings_status_check
  check (status in ('recording', 'processing', 'uploaded', 'failed', 'deleted'));
-- When the recording was deleted. Its object_key stays until its objects are gone.
alter table recordings add column deleted_at timestamptz;
create index recordings_of_workspace on recordings (workspace_id, created_at) where status = 'uploaded';
create index recordings_to_purge on recordings (id) where status = 'deleted' and object_key is not null;
