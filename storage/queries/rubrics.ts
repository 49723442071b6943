import { TandemError } from '../../machines/errors.ts';
import { inTransaction, type SqlOrTx, type Tx } from '../database.ts';
import { exactJson } from './exact-json-column.ts';
import { isUuid } from './identifiers.ts';
import { offsetOf, type Page, type PageOf } from './paging.ts';

/** A row of `judge_rubrics`. What the questions hold is for `language/judge/` to know. */
export interface RubricRow {
  id: string;
  workspaceId: string;
  /** Unique in its workspace. */
  name: string;
  description: string | null;
  /** Id or alias; null: the usual one. */
  model: string | null;
  /** By key, in the order in which they were written. */
  questions: Record<string, unknown>;
  questionCount: number;
  /** Whether all of the workspace may use it. */
  shared: boolean;
  createdByUserId: number;
  createdAt: Date;
  updatedAt: Date;
}

export const MAX_RUBRICS_PER_WORKSPACE = 500;

/** Who asks: authors see what is theirs and what is shared, those who may see all see all. */
export interface RubricReader {
  workspaceId: string;
  userId: number;
  maySeeAll: boolean;
}

export type CreateRubricInput = Pick<
  RubricRow,
  'id' | 'workspaceId' | 'name' | 'description' | 'model' | 'questions' | 'shared' | 'createdByUserId'
> & { now: Date };

/** @throws TandemError `RUBRIC_NAME_TAKEN`, `RUBRIC_LIMIT_REACHED` */
export async function createRubric(sql: SqlOrTx, input: CreateRubricInput): Promise<RubricRow> {
  const { now, questions, ...fields } = input;
  return await inTransaction(sql, async (tx) => {
    await lockWorkspace(tx, input.workspaceId);
    await requireFreeName(tx, input);
    const [count] = await tx<{ total: number }[]>`
      select count(*)::int as total from judge_rubrics where workspace_id = ${input.workspaceId}`;
    if ((count?.total ?? 0) >= MAX_RUBRICS_PER_WORKSPACE) {
      const message = `A workspace has at most ${MAX_RUBRICS_PER_WORKSPACE} rubrics. Delete one first.`;
      throw new TandemError('RUBRIC_LIMIT_REACHED', message, { details: { limit: MAX_RUBRICS_PER_WORKSPACE } });
    }
    const row = { ...fields, ...storedQuestions(tx, questions), createdAt: now, updatedAt: now };
    const [inserted] = await tx<RubricRow[]>`insert into judge_rubrics ${tx(row as never)} returning *`;
    return inserted!;
  });
}

/** Null: there is none that the reader may see. */
export async function findRubric(
  sql: SqlOrTx,
  { id, reader, lock = false }: { id: string; reader: RubricReader; lock?: boolean },
): Promise<RubricRow | null> {
  if (!isUuid(id)) return null;
  const [row] = await sql<RubricRow[]>`
    select * from judge_rubrics where id = ${id} and ${visibleTo(sql, reader)}
    ${lock ? sql`for no key update` : sql``}`;
  return row ?? null;
}

export interface RubricFilter {
  shared?: boolean | undefined;
  /** Made by the reader, or by others. */
  mine?: boolean | undefined;
}

/** Those the reader may see, newest first. */
export async function listRubrics(
  sql: SqlOrTx,
  { reader, shared, mine }: RubricFilter & { reader: RubricReader },
  page: Page,
): Promise<PageOf<RubricRow>> {
  const matching = sql`
    ${visibleTo(sql, reader)}
    ${shared === undefined ? sql`` : sql`and shared = ${shared}`}
    ${mine === undefined ? sql`` : sql`and (created_by_user_id = ${reader.userId}) = ${mine}`}`;
  const rows = await sql<RubricRow[]>`
    select * from judge_rubrics where ${matching}
    order by created_at desc, id limit ${page.limit} offset ${offsetOf(page)}`;
  const [count] = await sql<{ total: number }[]>`select count(*)::int as total from judge_rubrics where ${matching}`;
  return { rows, total: count?.total ?? 0 };
}

/** What is left out stays as it is. */
export type RubricPatch = Partial<Pick<RubricRow, 'name' | 'description' | 'model' | 'questions' | 'shared'>>;

/** Whether the author may is asked before. @throws TandemError `RUBRIC_NAME_TAKEN` */
export async function updateRubric(
  tx: Tx,
  { id, workspaceId }: Pick<RubricRow, 'id' | 'workspaceId'>,
  { patch: { questions, ...patch }, now }: { patch: RubricPatch; now: Date },
): Promise<RubricRow> {
  if (patch.name !== undefined) {
    await lockWorkspace(tx, workspaceId);
    await requireFreeName(tx, { workspaceId, id, name: patch.name });
  }
  const changes = { ...patch, ...(questions && storedQuestions(tx, questions)), updatedAt: now };
  const [row] = await tx<RubricRow[]>`update judge_rubrics set ${tx(changes as never)} where id = ${id} returning *`;
  return row!;
}

/** What was judged with it stays. */
export async function deleteRubric(sql: SqlOrTx, id: string): Promise<void> {
  await sql`delete from judge_rubrics where id = ${id}`;
}

function storedQuestions(sql: SqlOrTx, questions: Record<string, unknown>) {
  return { questions: exactJson(sql, questions), questionCount: Object.keys(questions).length };
}

function visibleTo(sql: SqlOrTx, { workspaceId, userId, maySeeAll }: RubricReader) {
  return sql`workspace_id = ${workspaceId} and (${maySeeAll} or shared or created_by_user_id = ${userId})`;
}

/** One at a time per workspace, or two would find the same name free. */
async function lockWorkspace(tx: Tx, workspaceId: string): Promise<void> {
  await tx`select id from workspaces where id = ${workspaceId} for no key update`;
}

async function requireFreeName(tx: Tx, { workspaceId, id, name }: Pick<RubricRow, 'workspaceId' | 'id' | 'name'>) {
  const [taken] = await tx`
    select 1 from judge_rubrics where workspace_id = ${workspaceId} and name = ${name} and id <> ${id}`;
  if (!taken) return;
  throw new TandemError('RUBRIC_NAME_TAKEN', 'Another rubric in the workspace has this name. Choose another one.');
}
