import { TandemError } from '../../machines/errors.ts';
import { inTransaction, type SqlOrTx, type Tx } from '../database.ts';
import { leaveToOwner } from './erasures.ts';
import { isUuid } from './identifiers.ts';
import { jsonb } from './json-columns.ts';
import { lockWorkspace } from './workspaces.ts';

/** A row of `voices`. Synthesis defines the content of recipe and measures. */
export interface VoiceRow {
  id: string;
  workspaceId: string;
  tier: 'quality' | 'fast';
  name: string;
  description: string | null;
  /** ISO 639. */
  language: string;
  labels: Record<string, string>;
  status: 'pending' | 'processing' | 'ready' | 'failed';
  /** Node whose disk has the samples. */
  ownerNode: string;
  errorCode: string | null;
  /** For users. */
  error: string | null;
  recipe: unknown;
  /** Fitted, not cloned. Null until it is ready. */
  approximate: boolean | null;
  measures: unknown;
  /** Object key of an example sentence. */
  sampleKey: string | null;
  createdByUserId: number;
  createdAt: Date;
  updatedAt: Date;
  deletedAt: Date | null;
}

export interface VoiceSampleRow {
  id: string;
  voiceId: string;
  objectKey: string;
  durationMs: number;
  bytes: number;
  sha256: Buffer;
  createdAt: Date;
}

export interface VoiceConsent {
  userId: number;
  apiKeyId: number | null;
  address: string;
  requestId: string;
}

export interface OwnVoiceKey {
  id: string;
  workspaceId: string;
}

export const MAX_VOICES_PER_WORKSPACE = 100;

export type CreateVoiceInput = Pick<
  VoiceRow,
  'id' | 'workspaceId' | 'tier' | 'name' | 'description' | 'language' | 'labels' | 'ownerNode' | 'createdByUserId'
> & { status: 'pending' | 'processing'; now: Date };

/** @throws TandemError `VOICE_LIMIT_REACHED` */
export async function createVoice(sql: SqlOrTx, { now, labels, ...input }: CreateVoiceInput): Promise<VoiceRow> {
  return await inTransaction(sql, async (tx) => {
    // One at a time per workspace; otherwise two could count the same number.
    await lockWorkspace(tx, input.workspaceId);
    await requireRoomForVoice(tx, input.workspaceId);
    const row = { ...input, labels: tx.json(labels), createdAt: now, updatedAt: now };
    const [inserted] = await tx<VoiceRow[]>`insert into voices ${tx(row)} returning *`;
    return inserted!;
  });
}

/** @throws TandemError `VOICE_LIMIT_REACHED` */
export async function requireRoomForVoice(sql: SqlOrTx, workspaceId: string): Promise<void> {
  const [count] = await sql<{ total: number }[]>`
    select count(*)::int as total from voices where workspace_id = ${workspaceId} and deleted_at is null`;
  if ((count?.total ?? 0) < MAX_VOICES_PER_WORKSPACE) return;
  const message = `A workspace has at most ${MAX_VOICES_PER_WORKSPACE} voices of its own. Delete one first.`;
  throw new TandemError('VOICE_LIMIT_REACHED', message, { details: { limit: MAX_VOICES_PER_WORKSPACE } });
}

export async function findVoice(
  sql: SqlOrTx,
  { id, workspaceId }: OwnVoiceKey,
  { lock = false }: { lock?: boolean } = {},
): Promise<VoiceRow | null> {
  if (!isUuid(id)) return null;
  const [row] = await sql<VoiceRow[]>`
    select * from voices where id = ${id} and workspace_id = ${workspaceId} and deleted_at is null
    ${lock ? sql`for no key update` : sql``}`;
  return row ?? null;
}

export async function getUndeletedVoice(sql: SqlOrTx, id: string): Promise<VoiceRow | null> {
  const [row] = await sql<VoiceRow[]>`select * from voices where id = ${id} and deleted_at is null`;
  return row ?? null;
}

/** Oldest first. Returns all, at most `MAX_VOICES_PER_WORKSPACE`. */
export async function listVoices(
  sql: SqlOrTx,
  { workspaceId, tier, unready }: { workspaceId: string; tier: VoiceRow['tier']; unready: boolean },
): Promise<VoiceRow[]> {
  return await sql<VoiceRow[]>`
    select * from voices where workspace_id = ${workspaceId} and tier = ${tier} and deleted_at is null
    ${unready ? sql`` : sql`and status = 'ready'`}
    order by status <> 'ready', created_at, id`;
}

export async function updateVoice(
  sql: SqlOrTx,
  key: OwnVoiceKey,
  { patch, now }: { patch: { name?: string | undefined; description?: string | null | undefined }; now: Date },
): Promise<VoiceRow | null> {
  if (!isUuid(key.id)) return null;
  const changes = { ...Object.fromEntries(Object.entries(patch).filter(([, v]) => v !== undefined)), updatedAt: now };
  const [row] = await sql<VoiceRow[]>`
    update voices set ${sql(changes)}
    where id = ${key.id} and workspace_id = ${key.workspaceId} and deleted_at is null returning *`;
  return row ?? null;
}

/**
 * Deletes a voice and its data about the speaker. Rows of samples stay until their files are removed. Null: the
 * workspace has no such voice.
 */
export async function deleteVoice(sql: SqlOrTx, key: OwnVoiceKey, { now }: { now: Date }): Promise<VoiceRow | null> {
  if (!isUuid(key.id)) return null;
  const [row] = await sql<VoiceRow[]>`
    update voices set deleted_at = ${now}, updated_at = ${now}, recipe = null, measures = null
    where id = ${key.id} and workspace_id = ${key.workspaceId} and deleted_at is null returning *`;
  return row ?? null;
}

/** Sets `processing`, from `pending`, or from `failed` with other samples. */
export async function beginProcessing(sql: SqlOrTx, id: string, { now }: { now: Date }): Promise<VoiceRow | null> {
  const [row] = await sql<VoiceRow[]>`
    update voices set status = 'processing', error_code = null, error = null, updated_at = ${now}
    where id = ${id} and deleted_at is null and status in ('pending', 'failed') returning *`;
  return row ?? null;
}

/** Assigns the voice's samples to a node's disk. False: there are samples already. Lock the voice first. */
export async function moveVoiceWithoutSamples(tx: Tx, id: string, { node }: { node: string }): Promise<boolean> {
  const moved = await tx`
    update voices set owner_node = ${node}
    where id = ${id} and not exists (select from voice_samples where voice_id = ${id})`;
  return moved.count > 0;
}

export type VoiceConclusion =
  | { status: 'ready'; recipe: object; measures: object | null; approximate: boolean }
  | { status: 'failed'; errorCode: string; error: string };

/** Null: it was deleted, or already concluded. */
export async function concludeVoice(
  sql: SqlOrTx,
  id: string,
  { conclusion, now }: { conclusion: VoiceConclusion; now: Date },
): Promise<VoiceRow | null> {
  const { status } = conclusion;
  const changes =
    conclusion.status === 'ready'
      ? {
          status,
          recipe: jsonb(sql, conclusion.recipe),
          measures: conclusion.measures && jsonb(sql, conclusion.measures),
          approximate: conclusion.approximate,
          updatedAt: now,
        }
      : { status, errorCode: conclusion.errorCode, error: conclusion.error, updatedAt: now };
  const [row] = await sql<VoiceRow[]>`
    update voices set ${sql(changes)}
    where id = ${id} and deleted_at is null and status = 'processing' returning *`;
  return row ?? null;
}

/** Returns the new samples of a voice. Equal bytes are one sample. */
export async function addVoiceSamples(
  sql: SqlOrTx,
  voiceId: string,
  { samples, now }: { samples: readonly Omit<VoiceSampleRow, 'voiceId' | 'createdAt'>[]; now: Date },
): Promise<VoiceSampleRow[]> {
  if (samples.length === 0) return [];
  const rows = samples.map((sample) => ({ ...sample, bytes: BigInt(sample.bytes), voiceId, createdAt: now }));
  const stored = await sql<StoredSample[]>`
    insert into voice_samples ${sql(rows)} on conflict (voice_id, sha256) do nothing returning *`;
  return stored.map(fromStored);
}

/** Longest first. */
export async function listVoiceSamples(sql: SqlOrTx, voiceId: string): Promise<VoiceSampleRow[]> {
  const rows = await sql<StoredSample[]>`
    select * from voice_samples where voice_id = ${voiceId} order by duration_ms desc, id`;
  return rows.map(fromStored);
}

export async function recordConsent(
  sql: SqlOrTx,
  voiceId: string,
  { consent, samples, now }: { consent: VoiceConsent; samples: number; now: Date },
): Promise<void> {
  const { userId, apiKeyId, address, requestId } = consent;
  const row = { voiceId, userId, apiKeyId, address, requestId, samples, givenAt: now };
  await sql`insert into voice_consents ${sql(row)}`;
}

/** Returns the key of the previous sample, whose object is obsolete. Null also if the voice is deleted. */
export async function setVoiceSampleKey(
  sql: SqlOrTx,
  id: string,
  sampleKey: string,
): Promise<{ isSet: boolean; previousKey: string | null }> {
  return await inTransaction(sql, async (tx) => {
    const [before] = await tx<{ sampleKey: string | null }[]>`
      select sample_key from voices where id = ${id} and deleted_at is null for no key update`;
    if (!before) return { isSet: false, previousKey: null };
    await tx`update voices set sample_key = ${sampleKey} where id = ${id}`;
    return { isSet: true, previousKey: before.sampleKey === sampleKey ? null : before.sampleKey };
  });
}

/** Voices on this node that wait for samples or processing. */
export async function unfinishedVoices(sql: SqlOrTx, { node }: { node: string }): Promise<VoiceRow[]> {
  return await sql<VoiceRow[]>`
    select * from voices
    where owner_node = ${node} and deleted_at is null and status in ('pending', 'processing')
    order by created_at, id`;
}

/** Remaining files of deleted voices, by voice. `node`: only those on its disk. */
export async function filesOfDeletedVoices(
  sql: SqlOrTx,
  { node }: { node: string | null },
): Promise<{ voiceId: string; keys: string[] }[]> {
  return await sql<{ voiceId: string; keys: string[] }[]>`
    select v.id as voice_id, array_remove(array_agg(s.object_key) || v.sample_key, null) as keys
    from voices v left join voice_samples s on s.voice_id = v.id
    where v.deleted_at is not null ${node === null ? sql`` : sql`and v.owner_node = ${node}`}
    group by v.id having count(s.id) > 0 or v.sample_key is not null
    order by v.id`;
}

/** Call it once they are deleted. If another node owns the voice, its eraser deletes what it has not uploaded yet. */
export async function forgetFilesOfVoice(
  sql: SqlOrTx,
  voiceId: string,
  { node, now }: { node: string; now: Date },
): Promise<void> {
  await inTransaction(sql, async (tx) => {
    const [voice] = await tx<VoiceRow[]>`select * from voices where id = ${voiceId} and deleted_at is not null`;
    const samples = await tx<{ objectKey: string }[]>`
      delete from voice_samples where voice_id = ${voiceId} returning object_key`;
    if (!voice) return;
    await tx`update voices set sample_key = null where id = ${voiceId}`;
    const { workspaceId, ownerNode, sampleKey } = voice;
    const keys = [...samples.map(({ objectKey }) => objectKey), ...(sampleKey === null ? [] : [sampleKey])];
    if (ownerNode !== node) await leaveToOwner(tx, { workspaceId, ownerNode, keys, now });
  });
}

type StoredSample = Omit<VoiceSampleRow, 'bytes'> & { bytes: bigint };

function fromStored(row: StoredSample): VoiceSampleRow {
  return { ...row, bytes: Number(row.bytes) };
}
