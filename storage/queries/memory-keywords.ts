import type postgres from 'postgres';
import type { Tx } from '../database.ts';
import { type MetadataCondition, matchingMetadata } from './memory-filter.ts';
import {
  KEYWORD_LIMITS,
  type KeywordConstraints,
  type KeywordQuery,
  keywordConstraints,
  matchingConstraints,
  type SearchScope,
} from './memory-query.ts';

/** A query word as in `memory_units.terms`. */
interface QueryWord {
  word: string;
  /** Number of units with the word, and of all units. */
  units: number;
  of: number;
  /** Existing words with similar spelling; only for a word that occurs nowhere. */
  alike: { word: string; units: number }[];
}

export interface KeywordHit {
  unitId: bigint;
  memoryId: string;
  /** Covered share of the query, 0 to 1, with words weighted by rarity. */
  coverage: number;
}

/** Maximum units that one word adds to the selection. */
const UNITS_PER_WORD = 2_000;
/** Maximum words that select units, rarest first. Others only count where they occur. */
const CHOOSING_WORDS = 10;
/** Units that are compared in full. */
const COMPARED_UNITS = 400;

/**
 * Finds units with words of the query, best first: by covered share, then by closeness of the words. Similarly spelled
 * words replace words that occur nowhere. Run it in a transaction, whose time limit it sets.
 * @throws Postgres error `57014` on timeout
 */
export async function keywordHits(
  tx: Tx,
  { query, limit, timeoutMs, ...scope }: SearchScope & { query: KeywordQuery; limit: number; timeoutMs: number },
): Promise<KeywordHit[]> {
  if (scope.collectionIds.length === 0) return [];
  await tx`select set_config('statement_timeout', ${String(Math.max(1, Math.ceil(timeoutMs)))}, true)`;
  const words = weighed(await wordsOf(tx, query.words, scope.collectionIds));
  const { choosing, total } = choiceOf(words);
  if (choosing.length === 0) return [];
  const constraints = await keywordConstraints(tx, query);
  return await tx<KeywordHit[]>`
    with choice as (
      select chosen.id, sum(weight) as weight
      from unnest(${choosing.map(({ query }) => query)}::text[], ${choosing.map(({ weight }) => weight)}::float8[]) as word (query, weight)
      cross join lateral (${unitsHaving(tx, { scope, constraints })}) as chosen
      group by chosen.id order by 2 desc, 1 limit ${COMPARED_UNITS}
    ), compared as materialized (
      select u.id, u.memory_id, (
        select sum(best.weight) from (
          select max(word.weight) as weight
          from unnest(${words.map(({ word }) => tsqueryOf(word))}::text[], ${words.map(({ weight }) => weight)}::float8[],
            ${words.map(({ place }) => place)}::int[]) as word (query, weight, place)
          where u.terms @@ word.query::tsquery group by word.place
        ) best
      ) / ${total}::float8 as coverage,
      ts_rank_cd(u.terms, ${words.map(({ word }) => tsqueryOf(word)).join(' | ')}::text::tsquery, 1 | 32) as nearness
      from choice join memory_units u on u.id = choice.id
    )
    select id as unit_id, memory_id, least(1, coverage) as coverage from compared
    where coverage > 0 order by coverage + ${NEARNESS_COUNTS}::float8 * nearness desc, id limit ${limit}`;
}

/** Maximum weight of closeness, which is below 1, against coverage. */
const NEARNESS_COUNTS = 0.2;

function unitsHaving(
  tx: Tx,
  { scope, constraints }: { scope: SearchScope; constraints: KeywordConstraints },
): postgres.PendingQuery<postgres.Row[]> {
  return tx`
    select u.id from memory_units u ${joinMemories(tx, scope.conditions)}
    where u.collection_id = any(${scope.collectionIds as string[]}::uuid[]) and u.terms @@ word.query::tsquery
    ${matchingConstraints(tx, constraints)} ${matchingMetadata(tx, scope.conditions)}
    limit ${UNITS_PER_WORD}`;
}

function joinMemories(tx: Tx, conditions: readonly MetadataCondition[]): postgres.PendingQuery<postgres.Row[]> {
  return conditions.length === 0 ? tx`` : tx`join memories m on m.id = u.memory_id`;
}

/** Returns the stems of a text, or its plain words if English drops all of them as stop words (`IT`, `The Who`). */
async function wordsOf(tx: Tx, text: string, collectionIds: readonly string[]): Promise<QueryWord[]> {
  return await tx<QueryWord[]>`
    with folded as (select memory_asked(lower(unaccent(${text}::text))) as text),
    stems as (select tsvector_to_array(to_tsvector('english', text)) as words from folded),
    asked as (
      select unnest(case when cardinality(words) > 0 then words
        else tsvector_to_array(to_tsvector('simple', (select text from folded))) end) as word from stems
    ), counted as (
      select word, coalesce((
        select sum(units)::int from memory_words known
        where known.collection_id = any(${collectionIds as string[]}::uuid[]) and known.word = asked.word
      ), 0) as units
      from asked where char_length(word) <= 64
    ), kept as (
      -- Of very many the rarest that occur, then those that do not.
      select * from counted order by units = 0, units, word limit ${KEYWORD_LIMITS.words}
    )
    select word, units, (
      select coalesce(sum(c.units), 0)::int from memory_collections c where c.id = any(${collectionIds as string[]}::uuid[])
    ) as of, coalesce((
      select jsonb_agg(jsonb_build_object('word', alike.word, 'units', alike.units))
      from (
        select known.word, sum(known.units)::int as units
        from (
          select other.word, other.units, 1 as likeness from memory_words other
          where kept.units = 0 and char_length(kept.word) between 4 and 40
            and other.collection_id = any(${collectionIds as string[]}::uuid[]) and other.word = any(swapped.words)
          union all
          select other.word, other.units, similarity(other.word, kept.word) from memory_words other
          where kept.units = 0 and char_length(kept.word) between 4 and 40
            and other.collection_id = any(${collectionIds as string[]}::uuid[]) and other.word % kept.word
            and other.word <> all(swapped.words)
        ) known
        group by known.word order by max(known.likeness) desc, 1 limit 12
      ) alike
    ), '[]') as alike
    -- With two neighbouring letters swapped, words of up to six letters have too few trigrams in common to be found by these.
    from kept cross join lateral (
      select array_agg(overlay(kept.word placing reverse(substr(kept.word, place, 2)) from place)) as words
      from generate_series(1, char_length(kept.word) - 1) as place
    ) swapped`;
}

interface WeighedWord {
  word: string;
  weight: number;
  /** Position of the query word that it is or replaces. */
  place: number;
  occurs: boolean;
}

/** Inverse document frequency, reduced for replacements. */
function weighed(words: readonly QueryWord[]): WeighedWord[] {
  return words.flatMap(({ word, units, of, alike }, place) => {
    const known = { word, weight: rarity(units, of), place, occurs: units > 0 };
    if (units > 0 || alike.length === 0) return [known];
    const meant = alike
      .filter((other) => isMistyped(word, other.word))
      .map((other) => ({ word: other.word, weight: rarity(other.units, of) * ALIKE_COUNTS, place, occurs: true }));
    return meant.length > 0 ? meant : [known];
  });
}

/** Factor for replacements. */
const ALIKE_COUNTS = 0.8;

function rarity(units: number, of: number): number {
  return Math.log1p((of + 1) / (units + 1));
}

/**
 * Whether spellings differ by few letters left out, added, changed or swapped: one in short words, two in long ones.
 */
function isMistyped(typed: string, known: string): boolean {
  return editDistance(typed, known) <= (Math.min(typed.length, known.length) >= 8 ? 2 : 1);
}

/** Damerau-Levenshtein distance. Words have at most 64 characters. */
function editDistance(a: string, b: string): number {
  let before: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1];
      let least = Math.min(above[column]! + 1, current[column - 1]! + 1, above[column - 1]! + (same ? 0 : 1));
      if (row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]) {
        least = Math.min(least, before[column - 2]! + 1);
      }
      current.push(least);
    }
    before = above;
    above = current;
  }
  return above[b.length]!;
}

/** Returns the queries that select units (the rarest occurring words, and all words together) and the total weight. */
function choiceOf(words: readonly WeighedWord[]): { choosing: { query: string; weight: number }[]; total: number } {
  const places = [...Map.groupBy(words, ({ place }) => place).values()].map((alternatives) => ({
    query: alternatives.map(({ word }) => tsqueryOf(word)).join(' | '),
    weight: Math.max(...alternatives.map(({ weight }) => weight)),
    occurs: alternatives.some(({ occurs }) => occurs),
  }));
  const total = places.reduce((sum, { weight }) => sum + weight, 0);
  const choosing = places
    .filter(({ occurs }) => occurs)
    .sort((a, b) => b.weight - a.weight)
    .slice(0, CHOOSING_WORDS);
  if (choosing.length < 2) return { choosing, total };
  const together = { query: choosing.map(({ query }) => `(${query})`).join(' & '), weight: 0 };
  return { choosing: [...choosing, together], total };
}

/** Quotes a word as a whole tsquery. */
function tsqueryOf(word: string): string {
  return `'${word.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;
}
