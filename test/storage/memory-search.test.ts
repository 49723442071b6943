import { expect, it } from 'vitest';
import { inTransaction, type Sql } from '../../storage/database.ts';
import type { MemoryCollectionRow } from '../../storage/queries/memory-collections.ts';
import { parseMetadataFilter } from '../../storage/queries/memory-filter.ts';
import { keywordHits } from '../../storage/queries/memory-keywords.ts';
import { parseKeywordQuery } from '../../storage/queries/memory-query.ts';
import { unitsMeeting, unitsStillMeeting } from '../../storage/queries/memory-search.ts';
import * as fc from '../properties.ts';
import { onEveryServer } from './every-server.ts';
import { chunk, process, remember, seedMemories } from './memory-fixture.ts';

onEveryServer('keyword search', (database) => {
  it('matches inflections and accents in any order, weighted by rarity', async () => {
    const { search } = await searching(database().sql, [
      'Émile restarted the pods in Zürich',
      'The pods are green',
      'The pods are blue',
      'Nothing of the kind',
    ]);
    expect(await search('restarting pod')).toEqual([
      'Émile restarted the pods in Zürich',
      'The pods are green',
      'The pods are blue',
    ]);
    expect(await search('zurich EMILE')).toEqual(['Émile restarted the pods in Zürich']);
    expect((await search('blue pods'))[0]).toBe('The pods are blue');
  });

  it('matches typos: missing, added, changed or swapped letters', async () => {
    const { search } = await searching(database().sql, [
      'Kubernetes restarts pods',
      'Asha likes filter coffee in Mumbai',
    ]);
    for (const typed of ['kubernets', 'kuberneets', 'kubernetis', 'kubrenetes']) {
      expect(await search(typed), typed).toEqual(['Kubernetes restarts pods']);
    }
    // Too few common trigrams: `fliter` and `filter` share three of eleven.
    for (const typed of ['fliter', 'cofefe', 'lieks']) {
      expect(await search(typed), typed).toEqual(['Asha likes filter coffee in Mumbai']);
    }
    expect(await search('coffe mumbay')).toEqual(['Asha likes filter coffee in Mumbai']);
    expect(await search('kube')).toEqual([]);
  });

  it('finds names that are English stop words', async () => {
    const { search } = await searching(database().sql, ['The Who played at night', 'Nobody was there']);
    expect((await search('the who'))[0]).toBe('The Who played at night');
  });

  it('finds words of other languages', async () => {
    const { search } = await searching(database().sql, ['मुझे चाय पसंद है', '東京 は 首都', 'Кофе по утрам']);
    expect(await search('चाय')).toEqual(['मुझे चाय पसंद है']);
    expect(await search('東京')).toEqual(['東京 は 首都']);
    expect(await search('КОФЕ')).toEqual(['Кофе по утрам']);
  });

  it('finds words anywhere in languages without spaces', async () => {
    const texts = [
      '北京大学位于中国北京市海淀区。',
      '上海的天气很好',
      '東京タワーは高い。Web版も',
      'ฉันชอบดื่มกาแฟตอนเช้า',
    ];
    const { search } = await searching(database().sql, texts);
    expect(await search('北京')).toEqual([texts[0]]);
    expect(await search('海淀区')).toEqual([texts[0]]);
    expect(await search('天气')).toEqual([texts[1]]);
    expect(await search('京')).toEqual(expect.arrayContaining([texts[0], texts[2]]));
    expect(await search('タワー')).toEqual([texts[2]]);
    expect(await search('web')).toEqual([texts[2]]);
    expect(await search('กาแฟ')).toEqual([texts[3]]);
    expect(await search('"大学位于"')).toEqual([texts[0]]);
    expect(await search('"位于大学"')).toEqual([]);
    expect(await search('的天气 -上海')).toEqual([]);
  });

  it('requires quoted phrases and excludes those after a minus, unless plain', async () => {
    const texts = ['filter coffee in the morning', 'coffee without a filter', 'tea'];
    const { search } = await searching(database().sql, texts);
    expect(await search('"filter coffee"')).toEqual([texts[0]]);
    expect(await search('coffee -morning')).toEqual([texts[1]]);
    expect(await search('coffee -"without a filter"')).toEqual([texts[0]]);
    expect(await search('"" -" " coffee')).toHaveLength(2);
    expect((await search('"coffee filter" -morning', {}, true)).toSorted()).toEqual([texts[1], texts[0]]);
  });

  it('handles hostile queries', async () => {
    const { search } = await searching(database().sql, ['Asha likes coffee']);
    const nothing = ['', '   ', '\0', '\ud83d', '😀🎉', '&|!():*<->', "'''", '\\', '"', '-', '-"', '%', '__proto__'];
    for (const query of nothing) expect(await search(query), JSON.stringify(query)).toEqual([]);
    const hostile = [
      `coffee ${Array.from({ length: 10_000 }, (_, index) => `w${index}`).join(' ')}`,
      `coffee ${'x'.repeat(100_000)}`,
      `coffee ${'"a b" '.repeat(5_000)}`.replaceAll('"', ' '),
      `coffee ${'-zz '.repeat(5_000)}`,
      "coffee'); drop table memories; --",
      'coffee \\\' \\" :* & | ! <-> ( )',
      'coffee\0 \ud800 \u202e 😀',
    ];
    for (const query of hostile) expect(await search(query), query.slice(0, 40)).toEqual(['Asha likes coffee']);
  });

  it('never fails for any query', async () => {
    const { search } = await searching(database().sql, ["Asha's coffee \\ 'quoted' foo-bar@example.com/x?y=1"]);
    const words = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.constantFrom("'", '\\', '"', '-', ' ', ':*', 'coffee', "asha's"),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(words, { maxLength: 12 }), async (parts) => {
        expect((await search(parts.join(''))).length).toBeLessThanOrEqual(1);
      }),
      { numRuns: 60 },
    );
  });

  it('respects its timeout', async () => {
    const { sql, collection } = await searching(database().sql, ['coffee']);
    const asked = inTransaction(sql, async (tx) => {
      await keywordHits(tx, { ...scopeOf(collection), query: parseKeywordQuery('x'), limit: 1, timeoutMs: 50 });
      await tx`select pg_sleep(30)`;
    });
    await expect(asked).rejects.toMatchObject({ code: '57014' });
    // The timeout must not apply to the next query on the connection.
    expect(await sql`show statement_timeout`).toEqual([{ statementTimeout: '0' }]);
  });

  it('uses its indexes in a large table', async () => {
    const { sql, collection } = await searching(database().sql, ['coffee']);
    await sql`
      insert into memories (id, workspace_id, collection_id, user_id, content, metadata, infer, status, content_hash, characters, created_at, updated_at, processed_as)
      select gen_random_uuid(), workspace_id, id, created_by_user_id, 'x', '{}', false, 'ready', '', 1, now(), now(), 'chunks'
      from memory_collections, generate_series(1, 5000)`;
    await sql`
      insert into memory_units (collection_id, memory_id, kind, position, text, terms, revision)
      select collection_id, id, 'chunk', 0, id::text, to_tsvector('simple', left(id::text, 8) || ' tea'), 5 from memories where processed_as is not null`;
    await sql`analyze memory_units`;
    const plan = await sql`
      explain select id from memory_units where collection_id = any(${[collection.id]}::uuid[]) and terms @@ '''coffe'''::tsquery`;
    expect(JSON.stringify(plan)).toContain('memory_units_terms');
  });
});

onEveryServer('metadata filters', (database) => {
  it('compare by type: equality, lists, ranges, nesting and absence', async () => {
    const { meeting } = await filtering(database().sql);
    expect(await meeting({})).toEqual(['a', 'b', 'c', 'd']);
    expect(await meeting({ lang: 'en' })).toEqual(['a', 'c']);
    expect(await meeting({ lang: ['hi', 'en'], year: { $gte: 2024 } })).toEqual(['a', 'b']);
    expect(await meeting({ year: { $gt: 2023, $lt: 2025 } })).toEqual(['a']);
    expect(await meeting({ year: { $ne: 2024 } })).toEqual(['b', 'c', 'd']);
    expect(await meeting({ year: '2024' })).toEqual([]);
    expect(await meeting({ year: { $lte: '9' } })).toEqual(['c']);
    expect(await meeting({ tags: 'x' })).toEqual(['a', 'b']);
    expect(await meeting({ tags: { $nin: ['x', 'z'] } })).toEqual(['c', 'd']);
    expect(await meeting({ 'author.team': 'ops' })).toEqual(['b']);
    expect(await meeting({ author: { team: { $in: ['ops', 'dev'] } } })).toEqual(['b', 'c']);
    expect(await meeting({ lang: null })).toEqual(['d']);
    expect(await meeting({ done: true })).toEqual(['d']);
    expect(await meeting({ done: false })).toEqual([]);
    expect(await meeting({ at: { $gte: '2026-01-01', $lt: '2026-02-01' } })).toEqual(['d']);
    expect(await meeting({ 'author.team': { $contains: 'p' } })).toEqual(['b']);
    expect(await meeting({ tags: { $icontains: 'Y' } })).toEqual(['a']);
    expect(await meeting({ year: { $contains: '20' } })).toEqual(['c']);
    expect(await meeting({ __proto__: 'x', constructor: 'y' })).toEqual([]);
  });

  it('combine in groups, with the names of MongoDB and mem0', async () => {
    const { meeting } = await filtering(database().sql);
    for (const [or, and, not] of [
      ['$or', '$and', '$not'],
      ['OR', 'AND', 'NOT'],
    ] as const) {
      expect(await meeting({ [or]: [{ lang: 'hi' }, { 'author.team': 'qa' }] })).toEqual(['b', 'c']);
      expect(await meeting({ [and]: [{ lang: 'en' }, { tags: 'y' }] })).toEqual(['a']);
      expect(await meeting({ [not]: [{ lang: 'en' }, { done: true }] })).toEqual(['b']);
      expect(await meeting({ lang: 'en', [or]: [{ year: 2024 }, { year: 2025.5 }] })).toEqual(['a']);
      const nested = { [and]: [{ [or]: [{ lang: 'en' }, { lang: 'hi' }] }, { [not]: [{ tags: 'y', year: 2024 }] }] };
      expect(await meeting(nested)).toEqual(['b', 'c']);
    }
    expect(await meeting({ $or: [{ year: { gte: 2025 } }, { at: { lt: '2026-02-01' } }] })).toEqual(['b', 'd']);
    expect(await meeting({ tags: { in: ['x'], ne: 'y' } })).toEqual(['b']);
    expect(await meeting({ year: { $gt: 2023, lt: 2025 } })).toEqual(['a']);
    expect(await meeting({ at: { contains: '-01-' } })).toEqual(['d']);
    expect(await meeting({ OR: [{ lang: { icontains: 'H' } }, { lang: { contains: 'E' } }] })).toEqual(['b']);
  });

  it('reach metadata keys named like groups and operators', async () => {
    const { sql, collection, meeting } = await filtering(database().sql);
    const metadata = { OR: ['east', 'west'], range: { gt: 5 } };
    const memory = await remember(sql, collection, { metadata, content: 'e' });
    const point = { embedder: 'test-1', bytes: new Uint8Array([1]) };
    await process(sql, memory, { units: [chunk('text of e', point)] });
    expect(await meeting({ OR: 'west' })).toHaveLength(1);
    expect(await meeting({ OR: ['west', 'north'] })).toHaveLength(1);
    expect(await meeting({ 'range.gt': 5 })).toHaveLength(1);
    expect(await meeting({ 'range.gt': { gt: 5 } })).toHaveLength(0);
  });

  it('give the same result for known units', async () => {
    const { sql, collection, nameOf } = await filtering(database().sql);
    const scope = { collectionIds: [collection.id], conditions: [] };
    const all = (await unitsMeeting(sql, scope, { limit: 10 }))!;
    const conditions = parseMetadataFilter({ year: { $gt: 2023 } });
    const query = parseKeywordQuery('"text of b"');
    expect((await unitsStillMeeting(sql, { unitIds: all, conditions, query })).map(nameOf)).toEqual(['b']);
    expect(await unitsMeeting(sql, scope, { limit: 3 })).toBeNull();
  });

  it('treat any key and value as data', async () => {
    const { meeting } = await filtering(database().sql);
    const key = fc.oneof(
      fc.string({ unit: 'binary', maxLength: 20 }),
      fc.constantFrom('lang', "a'b", '"', '{a,b}', '\\', '$x'),
    );
    const scalar = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.double(),
      fc.boolean(),
      fc.constant(null),
      fc.constantFrom("'; --", '{}'),
    );
    const operator = fc.constantFrom(
      '$eq',
      '$ne',
      '$gt',
      '$gte',
      '$lt',
      '$lte',
      '$in',
      '$nin',
      '$contains',
      '$icontains',
      '$where',
    );
    const value = fc.oneof(scalar, fc.array(scalar, { maxLength: 3 }), fc.dictionary(operator, scalar, { maxKeys: 2 }));
    const group = fc.constantFrom('$and', '$or', '$not', 'AND', 'OR', 'NOT', '$nor');
    const { filter } = fc.letrec<{ filter: object; groups: object }>((tie) => ({
      filter: fc.oneof({ maxDepth: 3 }, fc.dictionary(key, value, { maxKeys: 3 }), tie('groups')),
      groups: fc.dictionary(group, fc.array(tie('filter'), { maxLength: 3 }), { maxKeys: 2 }),
    }));
    await fc.assert(
      fc.asyncProperty(filter, async (filters) => {
        try {
          expect((await meeting(filters)).length).toBeLessThanOrEqual(4);
        } catch (error) {
          expect(error).toMatchObject({ code: 'VALIDATION_FAILED' });
        }
      }),
      { numRuns: 80 },
    );
  });
});

it.each([
  [{ $gt: 1 }, 'an operator where a key'],
  [{ a: { $regex: 'x' } }, 'an operator other than'],
  [{ a: { $gt: true } }, 'without a number or text'],
  [{ a: { $in: 'x' } }, 'without a list'],
  [{ a: { contains: 5 } }, 'without a text'],
  [{ a: { $gt: 1, b: 2 } }, 'an operator other than'],
  [{ a: { gt: 1, before: 2 } }, 'an operator other than'],
  [{ a: {} }, 'is an empty object'],
  [{ a: [[1]] }, 'not a string, number'],
  [{ a: Number.NaN }, 'not a string, number'],
  [{ 'a.b.c.d.e.f.g.h.i': 1 }, 'deeper than 8'],
  [{ a: Array.from({ length: 101 }, () => 1) }, 'more than 100 values'],
  [Object.fromEntries(Array.from({ length: 21 }, (_, at) => [`k${at}`, 1])), 'more than 20'],
  [{ 'a..b': 1 }, 'an empty key'],
  [{ $or: [] }, 'filters.$or must be a list of filters'],
  [{ $and: { a: 1 } }, 'filters.$and must be a list of filters'],
  [{ $not: ['a'] }, 'filters.$not.0 must be a filter'],
  [{ $or: [{}] }, 'filters.$or.0 is an empty object'],
  [{ OR: [{ a: 1 }, { b: { $gt: null } }] }, 'filters.OR.1.b has $gt without'],
  [{ OR: [{ a: 1 }, 'b'] }, 'filters.OR has a value that is not a string'],
  [{ a: { $or: [{ b: 1 }] } }, 'an operator other than'],
  [{ $or: Array.from({ length: 21 }, () => ({ a: 1 })) }, 'more than 20 filters'],
  [{ $and: Array.from({ length: 3 }, () => ({ $or: Array.from({ length: 7 }, () => ({ a: 1 })) })) }, 'more than 20'],
  [nestedGroups(5), 'deeper than 4 groups'],
  [nestedGroups(200), 'deeper than 4 groups'],
  [{ a: 'x'.repeat(2_001) }, 'more than 2000 characters'],
])('reject %j', (filters, reason) => {
  expect(() => parseMetadataFilter(filters)).toThrow(
    expect.objectContaining({ code: 'VALIDATION_FAILED', message: expect.stringContaining(reason) }),
  );
});

function nestedGroups(levels: number): object {
  return Array.from({ length: levels }).reduce<object>((inner) => ({ $not: [inner] }), { a: 1 });
}

async function searching(sql: Sql, texts: readonly string[]) {
  const { collection } = await seedMemories(sql);
  for (const content of texts) await remember(sql, collection, { content });
  const search = async (text: string, filters: object = {}, plain = false): Promise<string[]> => {
    const scope = { ...scopeOf(collection), conditions: parseMetadataFilter(filters) };
    const query = parseKeywordQuery(text, { plain });
    const hits = await inTransaction(sql, (tx) => keywordHits(tx, { ...scope, query, limit: 10, timeoutMs: 5_000 }));
    for (const { coverage } of hits) expect(coverage).toSatisfy((share: number) => share > 0 && share <= 1);
    const rows = await sql<{ id: bigint; text: string }[]>`select id, text from memory_units`;
    return hits.map(({ unitId }) => rows.find(({ id }) => id === unitId)!.text);
  };
  return { sql, collection, search };
}

async function filtering(sql: Sql) {
  const { collection } = await seedMemories(sql);
  const metadata = {
    a: { lang: 'en', year: 2024, tags: ['x', 'y'] },
    b: { lang: 'hi', year: 2025.5, tags: 'x', author: { team: 'ops' } },
    c: { lang: 'en', year: '2024 or so', author: { team: ['dev', 'qa'] } },
    d: { done: true, lang: null, at: '2026-01-31T00:00:00Z' },
  };
  const point = { embedder: 'test-1', bytes: new Uint8Array([1]) };
  for (const [name, value] of Object.entries(metadata)) {
    const memory = await remember(sql, collection, { metadata: value, content: name });
    await process(sql, memory, { units: [chunk(`text of ${name}`, point)] });
  }
  const rows = await sql<{ id: bigint; text: string }[]>`select id, text from memory_units`;
  const nameOf = (unitId: bigint) => rows.find(({ id }) => id === unitId)?.text.slice(-1) ?? '?';
  const meeting = async (filters: unknown): Promise<string[]> => {
    const scope = { collectionIds: [collection.id], conditions: parseMetadataFilter(filters) };
    return (await unitsMeeting(sql, scope, { limit: 10 }))!.map(nameOf).toSorted();
  };
  return { sql, collection, meeting, nameOf };
}

function scopeOf({ id }: MemoryCollectionRow) {
  return { collectionIds: [id], conditions: [] };
}
