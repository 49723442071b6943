-- What the agents of calls are told on answering and when the talk begins: how long it is, for the bill. What it says is
-- not kept.

alter table calls add column announce_characters integer check (announce_characters > 0);
alter table calls add column whisper_characters integer check (whisper_characters > 0);
-- The workspace's price when the call was admitted.
alter table calls add column character_price_nano bigint not null default 0 check (character_price_nano >= 0);
-- Whether the agent heard it begin, which is when it is owed for.
alter table calls add column announced boolean not null default false;
alter table calls add column whispered boolean not null default false;
-- What was charged for it; null before the end and when nothing was owed.
alter table calls add column speech_cost_nano bigint;
