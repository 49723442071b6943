-- How much of a text was handed to its listener, as far as that was noted: after a crash the rest is refunded.
alter table tts_streams add column delivered_characters integer not null default 0 check (delivered_characters >= 0);
