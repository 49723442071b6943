import type postgres from 'postgres';
import type { SqlOrTx } from '../database.ts';
import type { MetadataCondition } from './memory-filter.ts';
import { storableText } from './memory-text.ts';

/** Units and collections to search. */
export interface SearchScope {
  /** From `collectionsToSearch`. */
  collectionIds: readonly string[];
  conditions: readonly MetadataCondition[];
}

export interface KeywordQuery {
  /** Words to find, in any order. */
  words: string;
  /** Quoted: must occur word by word. */
  phrases: string[];
  /** After a minus: must not occur. */
  excluded: string[];
}

/** Limits of a query; the excess is ignored. */
export const KEYWORD_LIMITS = { characters: 4_000, phrases: 8, excluded: 8, words: 24 };

/** Parses web search syntax: `"in quotes"` and `-without`. Plain text has neither. */
export function parseKeywordQuery(text: string, { plain = false }: { plain?: boolean } = {}): KeywordQuery {
  const query = storableText(text.slice(0, KEYWORD_LIMITS.characters));
  if (plain) return { words: query, phrases: [], excluded: [] };
  const phrases: string[] = [];
  const excluded: string[] = [];
  const words = query.replace(/(^|\s)(-?)"([^"]*)"|(^|\s)-([\p{L}\p{N}]\S*)/gu, (_, _a, minus, phrase, _b, word) => {
    if (word !== undefined || minus === '-') {
      excluded.push(word ?? phrase);
      return ' ';
    }
    phrases.push(phrase);
    return ` ${phrase} `;
  });
  return {
    words,
    phrases: phrases.slice(0, KEYWORD_LIMITS.phrases),
    excluded: excluded.slice(0, KEYWORD_LIMITS.excluded),
  };
}

/** Required and excluded phrases of a query, each as a `tsquery`. */
export interface KeywordConstraints {
  phrases: string[];
  excluded: string[];
}

/** Converts the phrases of a query to constraints. Drops phrases with only stop words. */
export async function keywordConstraints(
  sql: SqlOrTx,
  { phrases, excluded }: Pick<KeywordQuery, 'phrases' | 'excluded'>,
): Promise<KeywordConstraints> {
  if (phrases.length === 0 && excluded.length === 0) return { phrases: [], excluded: [] };
  const rows = await sql<{ query: string; isExcluded: boolean }[]>`
    select query::text, place > ${phrases.length} as is_excluded from (
      select phraseto_tsquery('english', memory_letters(lower(unaccent(text)))) as query, place
      from unnest(${[...phrases, ...excluded]}::text[]) with ordinality as said (text, place)
    ) read where numnode(query) > 0`;
  const of = (isExcluded: boolean) => rows.filter((row) => row.isExcluded === isExcluded).map(({ query }) => query);
  return { phrases: of(false), excluded: of(true) };
}

/** Condition on `memory_units u`: has all phrases and nothing excluded. Begins with `and`. */
export function matchingConstraints(
  sql: SqlOrTx,
  { phrases, excluded }: KeywordConstraints,
): postgres.PendingQuery<postgres.Row[]> {
  const all = phrases.reduce((sum, query) => sql`${sum} and u.terms @@ ${query}::text::tsquery`, sql``);
  return excluded.reduce((sum, query) => sql`${sum} and not u.terms @@ ${query}::text::tsquery`, all);
}
