-- Third parties are transcribed too: a segment names the leg that was added by its id.
alter table call_transcript_segments drop constraint call_transcript_segments_leg_check;
