-- What workspaces asked to have remembered: collections, the memories in them, and the units in which those are found.

-- Extensions that come with every PostgreSQL and that the owner of a database may create, unless somebody forbade it.
do $$
declare
  wanted text;
begin
  foreach wanted in array array['pg_trgm', 'unaccent', 'btree_gin'] loop
    begin
      execute format('create extension if not exists %I', wanted);
    exception
      when insufficient_privilege then
        raise exception 'the role % may not create the extension %; an administrator has to run "create extension pg_trgm; create extension unaccent; create extension btree_gin;" in this database once',
          current_user, wanted using errcode = 'insufficient_privilege';
      when feature_not_supported or undefined_file then
        raise exception 'the server has no extension %; install its contrib package (Debian: postgresql-contrib)',
          wanted using errcode = 'feature_not_supported';
    end;
  end loop;
end $$;

create table memory_collections (
  id uuid primary key,
  workspace_id uuid not null references workspaces (id),
  -- user: of one person; team: of its members; knowledge, hive: of everybody in the workspace.
  type text not null check (type in ('user', 'team', 'knowledge', 'hive')),
  name text not null,
  -- The name as it is compared: without differences of case or of how letters are written.
  name_key text not null,
  label text not null,
  -- Whose personal collection it is.
  owner_user_id integer references users (id),
  created_by_user_id integer not null references users (id),
  -- Counts changes of its units. Who changes them increments it first, and so waits for whoever is changing them:
  -- everything up to the revision that somebody reads has committed.
  revision bigint not null default 0,
  -- How many there are.
  units integer not null default 0,
  -- Removals of units up to this revision are forgotten.
  removals_forgotten bigint not null default 0,
  created_at timestamptz not null,
  deleted_at timestamptz,
  check ((type = 'user') = (owner_user_id is not null))
);
create unique index memory_collections_name on memory_collections (workspace_id, type, name_key)
  where deleted_at is null and type <> 'user';
create unique index memory_collections_personal on memory_collections (workspace_id, owner_user_id)
  where deleted_at is null and type = 'user';

create table memory_collection_members (
  collection_id uuid not null references memory_collections (id),
  user_id integer not null references users (id),
  added_at timestamptz not null,
  primary key (collection_id, user_id)
);
create index memory_collection_members_user on memory_collection_members (user_id);

create table memories (
  id uuid primary key,
  workspace_id uuid not null references workspaces (id),
  collection_id uuid not null references memory_collections (id),
  user_id integer not null references users (id),
  api_key_id integer references api_keys (id),
  title text,
  -- Empty until it is extracted from its document, and once the memory is deleted.
  content text not null,
  metadata jsonb not null check (jsonb_typeof(metadata) = 'object'),
  -- Whether facts are wanted.
  infer boolean not null,
  -- Of a document: its name, format, pages; null for a text.
  source jsonb,
  status text not null check (status in ('pending', 'processing', 'ready', 'failed')),
  stage text check (stage in ('extracting', 'chunking', 'embedding', 'indexing')),
  attempts integer not null default 0,
  -- When the next attempt is due; null once the outcome is final.
  next_attempt_at timestamptz,
  -- Somebody is working on it until then.
  leased_until timestamptz,
  error_code text,
  error text,
  -- What was made of it: facts and preferences that a model drew from it, or the text as it is, in chunks.
  processed_as text check (processed_as in ('facts', 'chunks')),
  -- SHA-256 of the content.
  content_hash bytea not null,
  -- The memory of the same collection that says the same, and that is found instead.
  deduplicated_into uuid references memories (id),
  characters integer not null check (characters >= 0),
  created_at timestamptz not null,
  updated_at timestamptz not null,
  ready_at timestamptz,
  deleted_at timestamptz,
  check (status <> 'failed' or error_code is not null),
  check ((status in ('pending', 'processing') and deleted_at is null) = (next_attempt_at is not null))
);
create index memories_collection on memories (collection_id, created_at desc, id) where deleted_at is null;
create index memories_status on memories (collection_id, status, created_at desc, id) where deleted_at is null;
create index memories_due on memories (next_attempt_at) where next_attempt_at is not null;
create index memories_content on memories (collection_id, content_hash) where deleted_at is null;
create index memories_duplicates on memories (deduplicated_into) where deduplicated_into is not null;
create index memories_metadata on memories using gin (metadata jsonb_path_ops) where deleted_at is null;

-- What was learnt, with its history. Only current ones, neither a repetition nor superseded, have a unit.
create table memory_facts (
  id uuid primary key,
  collection_id uuid not null references memory_collections (id),
  memory_id uuid not null references memories (id),
  category text not null check (category in ('fact', 'preference')),
  statement text not null,
  -- What it is about and what of that it tells, such as `Asha` and `city`; what can only have one value supersedes.
  subject text,
  attribute text,
  -- An earlier fact that says the same.
  deduplicated_into uuid references memory_facts (id),
  -- The later fact that says otherwise; null also when that was deleted.
  superseded_by uuid references memory_facts (id) on delete set null,
  superseded_at timestamptz,
  created_at timestamptz not null
);
create index memory_facts_memory on memory_facts (memory_id);
create index memory_facts_superseded_by on memory_facts (superseded_by) where superseded_by is not null;
create index memory_facts_duplicates on memory_facts (deduplicated_into) where deduplicated_into is not null;
create index memory_facts_about on memory_facts (collection_id, lower(subject), lower(attribute))
  where deduplicated_into is null and superseded_at is null;
create index memory_facts_same on memory_facts (collection_id, md5(lower(statement)))
  where deduplicated_into is null and superseded_at is null;
create index memory_facts_statement on memory_facts using gin (collection_id, statement gin_trgm_ops)
  where deduplicated_into is null and superseded_at is null;

-- What is found.
create table memory_units (
  id bigint generated always as identity primary key,
  collection_id uuid not null references memory_collections (id),
  memory_id uuid not null references memories (id),
  -- whole: the text as it came, until it is processed.
  kind text not null check (kind in ('whole', 'chunk', 'fact')),
  fact_id uuid unique references memory_facts (id),
  position integer not null,
  -- Under which headings it stands.
  heading text,
  text text not null,
  -- Words of title, heading and text without accents, in their English stems and as they are written.
  terms tsvector not null,
  -- Which embedder made the point; those of different ones do not compare. Null: none did yet.
  embedder text,
  -- One signed byte for each dimension: only its direction counts.
  embedding bytea,
  -- Of the collection, when it was added.
  revision bigint not null,
  check ((kind = 'fact') = (fact_id is not null)),
  check ((embedder is null) = (embedding is null))
);
create index memory_units_terms on memory_units using gin (collection_id, terms) with (fastupdate = off);
create index memory_units_memory on memory_units (memory_id, position);
create index memory_units_changes on memory_units (collection_id, revision, id) where embedding is not null;
create index memory_units_embedder on memory_units (embedder, id) where kind <> 'whole';

-- Units that are gone, for whoever keeps a copy of their points.
create table memory_unit_removals (
  collection_id uuid not null references memory_collections (id),
  revision bigint not null,
  unit_id bigint not null,
  removed_at timestamptz not null,
  primary key (collection_id, revision, unit_id)
);
create index memory_unit_removals_age on memory_unit_removals (removed_at);

-- In how many units each word occurs: how much finding it tells, and what somebody meant who mistyped it.
create table memory_words (
  collection_id uuid not null references memory_collections (id),
  word text not null,
  units integer not null,
  primary key (collection_id, word)
) with (fillfactor = 70);
create index memory_words_similar on memory_words using gin (collection_id, word gin_trgm_ops);

-- Languages that write no spaces (Chinese, Japanese, Thai, Lao, Khmer, Burmese): each of their letters by itself.
create function memory_letters(content text) returns text language sql immutable as $$
  select case when octet_length(content) = char_length(content) then content else
    regexp_replace(content, '([\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])', ' \1 ', 'g') end
$$;

-- Of these, every two letters that stand together, which is what most of their words are.
create function memory_pairs(content text) returns text language sql immutable as $$
  select case when octet_length(content) = char_length(content) then '' else coalesce((
    select string_agg(regexp_replace(regexp_replace(half, '(..)', '\1 ', 'g'), '(^| ).$', ''), ' ')
    from regexp_matches(content, '[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]{2,}', 'g') as found (run), unnest(array[run[1], substr(run[1], 2)]) as half
  ), '') end
$$;

-- A query of theirs is its pairs; of a letter alone that letter.
create function memory_asked(content text) returns text language sql immutable as $$
  select case when octet_length(content) = char_length(content) then content else
    memory_letters(regexp_replace(content, '[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]{2,}', ' ', 'g')) || ' ' || memory_pairs(content) end
$$;

-- The words of a unit: stems for finding, forms for names and for words that English leaves out.
create function memory_terms(title text, heading text, content text) returns tsvector language sql stable as $$
  select setweight(to_tsvector('english', memory_letters(t)), 'A') || setweight(to_tsvector('english', memory_letters(h)), 'B')
    || to_tsvector('english', memory_letters(c))
    || strip(to_tsvector('simple', memory_letters(t || ' ' || h || ' ' || c) || ' ' || memory_pairs(t || ' ' || h || ' ' || c)))
  from (select lower(unaccent(coalesce(title, ''))), lower(unaccent(coalesce(heading, ''))), lower(unaccent(content)))
    as folded (t, h, c)
$$;
