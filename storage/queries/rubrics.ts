import { TandemError } from '../../machines/errors.ts';
import { inTransaction, type SqlOrTx, type Tx } from '../database.ts';
import { isUuid } from './identifiers.ts';
import { exactJson } from './json-columns.ts';
import { offsetOf, type Page, type PageOf } from './paging.ts';
import { lockWorkspace } from './workspaces.ts';

/** A row of `judge_rubrics`. `language/judge/` defines the content of the questions. */
export interface RubricRow {
  id: string;
  workspaceId: string;
  /** Unique in its workspace. */
  name: string;
  description: string | null;
  /** Id or alias; null: the default model. */
  model: string | null;
  /** By key, in the original order. */
  questions: Record<string, unknown>;
  questionCount: number;
  /** The whole workspace may use it. */
  shared: boolean;
  createdByUserId: number;
  createdAt: Date;
  updatedAt: Date;
}

export const MAX_RUBRICS_PER_WORKSPACE = 500;

/** Authors see their own and shared rubrics; `maySeeAll` shows all. */
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
    const [inserted] = await tx<RubricRow[]>`insert into judge_rubrics ${tx(row)} returning *`;
    return inserted!;
  });
}

/** Null: the reader may see no such rubric. */
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
  /** True: the reader's own; false: those of others. */
  mine?: boolean | undefined;
}

/** Newest first. */
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

/** Omitted fields stay unchanged. */
export type RubricPatch = Partial<Pick<RubricRow, 'name' | 'description' | 'model' | 'questions' | 'shared'>>;

/** Updates a rubric. The caller checks permission. @throws TandemError `RUBRIC_NAME_TAKEN` */
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
  const [row] = await tx<RubricRow[]>`update judge_rubrics set ${tx(changes)} where id = ${id} returning *`;
  return row!;
}

/** Deletes a rubric, but not its evaluations. */
export async function deleteRubric(sql: SqlOrTx, id: string): Promise<void> {
  await sql`delete from judge_rubrics where id = ${id}`;
}

function storedQuestions(sql: SqlOrTx, questions: Record<string, unknown>) {
  return { questions: exactJson(sql, questions), questionCount: Object.keys(questions).length };
}

function visibleTo(sql: SqlOrTx, { workspaceId, userId, maySeeAll }: RubricReader) {
  return sql`workspace_id = ${workspaceId} and (${maySeeAll} or shared or created_by_user_id = ${userId})`;
}

async function requireFreeName(tx: Tx, { workspaceId, id, name }: Pick<RubricRow, 'workspaceId' | 'id' | 'name'>) {
  const [taken] = await tx`
    select 1 from judge_rubrics where workspace_id = ${workspaceId} and name = ${name} and id <> ${id}`;
  if (!taken) return;
  throw new TandemError('RUBRIC_NAME_TAKEN', 'Another rubric in the workspace has this name. Choose another one.');
}
