import { expect, it } from 'vitest';
import type { Sql } from '../../storage/database.ts';
import { deleteMemory } from '../../storage/queries/memories.ts';
import { factsOfMemory, type NewFact, similarFacts } from '../../storage/queries/memory-facts.ts';
import { onEveryServer } from './every-server.ts';
import { fact, process, remember, seedMemories } from './memory-fixture.ts';
import { later, NOW } from './seed.ts';

onEveryServer('facts', (database) => {
  it('store repetitions of known facts, and find them once', async () => {
    const { sql, viewer, learn } = await learning(database().sql);
    const known = fact('Asha lives in Mumbai');
    const memory = await learn([known]);
    const again = fact('ASHA lives in Mumbai');
    const meant = fact('Mumbai is where Asha lives', { deduplicatedInto: known.id });
    const second = await learn([again, meant]);
    expect((await factsOfMemory(sql, viewer, second.id)).map((row) => row.deduplicatedInto)).toEqual([
      known.id,
      known.id,
    ]);
    expect(await found(sql)).toEqual(['Asha lives in Mumbai']);
    expect((await factsOfMemory(sql, viewer, memory.id)).map(({ id }) => id)).toEqual([known.id]);
  });

  it('hide contradicted facts and keep their history', async () => {
    const { sql, learn } = await learning(database().sql);
    const [delhi, mumbai, pune] = ['Delhi', 'Mumbai', 'Pune'].map((city) => fact(`Asha lives in ${city}`)) as [
      NewFact,
      NewFact,
      NewFact,
    ];
    await learn([delhi]);
    await learn([{ ...mumbai, supersedes: [delhi.id] }]);
    // A superseded fact stays so.
    await learn([{ ...pune, supersedes: [mumbai.id, delhi.id] }]);
    expect(await found(sql)).toEqual(['Asha lives in Pune']);
    expect(await sql`select id, superseded_by, superseded_at from memory_facts order by created_at`).toEqual([
      { id: delhi.id, supersededBy: mumbai.id, supersededAt: later(2) },
      { id: mumbai.id, supersededBy: pune.id, supersededAt: later(3) },
      { id: pune.id, supersededBy: null, supersededAt: null },
    ]);
    // A return to an earlier place is a new fact.
    await learn([fact('Asha lives in Delhi', { supersedes: [pune.id] })]);
    expect(await found(sql)).toEqual(['Asha lives in Delhi']);
  });

  it('never supersede facts of another collection', async () => {
    const { sql, learn } = await learning(database().sql);
    const other = await learning(sql);
    const mine = fact('Asha lives in Delhi');
    await learn([mine]);
    await other.learn([fact('Asha lives in Pune', { supersedes: [mine.id], deduplicatedInto: mine.id })]);
    expect(await found(sql)).toEqual(['Asha lives in Delhi', 'Asha lives in Pune']);
  });

  it('fall back to a repetition once their own memory is deleted', async () => {
    const { sql, viewer, learn } = await learning(database().sql);
    const known = fact('Asha lives in Mumbai', { point: { embedder: 'test-1', bytes: new Uint8Array([1]) } });
    const first = await learn([known, fact('Asha drinks tea'), fact('asha drinks tea')]);
    const second = await learn([fact('asha lives in mumbai')]);
    const third = await learn([fact('ASHA lives in Mumbai')]);
    await deleteMemory(sql, viewer, { id: first.id, now: NOW });
    expect(await found(sql)).toEqual(['asha lives in mumbai']);
    const [heir] = await factsOfMemory(sql, viewer, second.id);
    expect(heir?.deduplicatedInto).toBeNull();
    expect(await factsOfMemory(sql, viewer, third.id)).toMatchObject([{ deduplicatedInto: heir!.id }]);
    await deleteMemory(sql, viewer, { id: second.id, now: NOW });
    await deleteMemory(sql, viewer, { id: third.id, now: NOW });
    expect(await sql`select 1 from memory_facts`).toHaveLength(0);
  });

  it('take their history with them without restoring superseded facts', async () => {
    const { sql, viewer, learn } = await learning(database().sql);
    const delhi = fact('Asha lives in Delhi');
    await learn([delhi]);
    const second = await learn([fact('Asha lives in Pune', { supersedes: [delhi.id] })]);
    await deleteMemory(sql, viewer, { id: second.id, now: NOW });
    expect(await found(sql)).toEqual([]);
    expect(await sql`select id, superseded_by, superseded_at from memory_facts`).toEqual([
      { id: delhi.id, supersededBy: null, supersededAt: later(2) },
    ]);
  });

  it('match by subject, attribute and similar letters', async () => {
    const { sql, collection, learn } = await learning(database().sql);
    const city = fact('She moved to Pune', { subject: 'Asha', attribute: 'city' });
    const tea = fact('Asha prefers filter coffee', { category: 'preference' });
    const { id: memoryId } = await learn([city, tea, fact('Invoices are due in March')]);
    const similar = (statement: string, about: Pick<NewFact, 'subject' | 'attribute'>) =>
      similarFacts(sql, { memoryId, collectionId: collection.id, statement, ...about, limit: 5 });
    const nothing = { subject: null, attribute: null };
    expect((await similar('X', { subject: 'ASHA', attribute: 'City' })).map(({ id }) => id)).toEqual([city.id]);
    const [coffee, ...others] = await similar('Asha prefers filter coffe.', nothing);
    expect(coffee).toMatchObject({ id: tea.id, category: 'preference' });
    expect(coffee!.similarity).toBeGreaterThan(0.8);
    expect(others).toEqual([]);
    expect(await similar('\0', nothing)).toEqual([]);
    expect(await similar('x'.repeat(1_000_000), nothing)).toEqual([]);
  });
});

async function learning(sql: Sql) {
  const seeded = await seedMemories(sql);
  let learnt = 0;
  const learn = async (facts: readonly NewFact[]) => {
    const memory = await remember(sql, seeded.collection);
    learnt += 1;
    await process(sql, memory, { facts, now: later(learnt) });
    return memory;
  };
  return { ...seeded, learn };
}

async function found(sql: Sql): Promise<string[]> {
  return (await sql<{ text: string }[]>`select text from memory_units order by text`).map(({ text }) => text);
}
