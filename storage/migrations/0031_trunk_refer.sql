-- Whose phone may transfer calls with REFER.
alter table trunks
  add column refer text not null default 'none' check (refer in ('none', 'agent', 'both'));
