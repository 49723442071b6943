import type postgres from 'postgres';
import type { SqlOrTx } from '../database.ts';
import type { MetadataCondition } from './memory-filter.ts';
import { storableText } from './memory-text.ts';

/** Which units of which collections are looked at. */
export interface SearchScope {
  /** Of `collectionsToSearch`. */
  collectionIds: readonly string[];
  conditions: readonly MetadataCondition[];
}

/** A query as it is typed, taken apart. */
export interface KeywordQuery {
  /** Whose words are looked for, in any order. */
  words: string;
  /** In quotes: have to occur, word by word. */
  phrases: string[];
  /** After a minus: must not occur. */
  excluded: string[];
}

/** What a query may ask at most; what is beyond is left out. */
export const KEYWORD_LIMITS = { characters: 4_000, phrases: 8, excluded: 8, words: 24 };

/** As web searches are written: `"in quotes"` and `-without`. Plain text has neither. */
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

/** What a query insists on, each as a `tsquery`. */
export interface Insistence {
  phrases: string[];
  excluded: string[];
}

/** Of what it says; a phrase of words that say nothing asks for nothing. */
export async function insistenceOf(
  sql: SqlOrTx,
  { phrases, excluded }: Pick<KeywordQuery, 'phrases' | 'excluded'>,
): Promise<Insistence> {
  if (phrases.length === 0 && excluded.length === 0) return { phrases: [], excluded: [] };
  const rows = await sql<{ query: string; isExcluded: boolean }[]>`
    select query::text, place > ${phrases.length} as is_excluded from (
      select phraseto_tsquery('english', memory_letters(lower(unaccent(text)))) as query, place
      from unnest(${[...phrases, ...excluded]}::text[]) with ordinality as said (text, place)
    ) read where numnode(query) > 0`;
  const of = (isExcluded: boolean) => rows.filter((row) => row.isExcluded === isExcluded).map(({ query }) => query);
  return { phrases: of(false), excluded: of(true) };
}

/** On `memory_units u`: that it has the phrases and nothing that is excluded. Begins with `and`. */
export function meetingQuery(sql: SqlOrTx, { phrases, excluded }: Insistence): postgres.PendingQuery<postgres.Row[]> {
  const all = phrases.reduce((sum, query) => sql`${sum} and u.terms @@ ${query}::text::tsquery`, sql``);
  return excluded.reduce((sum, query) => sql`${sum} and not u.terms @@ ${query}::text::tsquery`, all);
}
