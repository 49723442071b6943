-- Placements of a workspace by second, so that a placement need not look at every call of the last minute. A trigger
-- counts them, so that calls placed by an older node count too. Some of them are rejected later: an upper bound.
create table placement_counts (
  workspace_id uuid not null references workspaces (id),
  -- Of the call's created_at, since 1970.
  second bigint not null,
  placements integer not null,
  primary key (workspace_id, second)
);

create or replace function count_placement() returns trigger language plpgsql as $$
declare
  placed_in_second bigint := floor(extract(epoch from new.created_at));
  counted integer;
begin
  insert into placement_counts as c (workspace_id, second, placements)
    values (new.workspace_id, placed_in_second, 1)
    on conflict (workspace_id, second) do update set placements = c.placements + 1
    returning placements into counted;
  -- Old counts are of no use. Once a second is enough.
  if counted = 1 then
    delete from placement_counts where workspace_id = new.workspace_id and second < placed_in_second - 600;
  end if;
  return null;
end $$;

lock table calls in share row exclusive mode;
insert into placement_counts (workspace_id, second, placements)
  select workspace_id, floor(extract(epoch from created_at)), count(*) from calls
  where created_at > now() - interval '5 minutes' and placed_via <> 'inbound'
  group by 1, 2;
create trigger calls_placement_count after insert on calls
  for each row when (new.placed_via <> 'inbound') execute function count_placement();
