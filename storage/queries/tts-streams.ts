import type { SqlOrTx, Tx } from '../database.ts';
import { isOwnedBy, type LostOwner } from './nodes.ts';

/** A text that was charged for and is, or was, spoken. */
export interface TtsStreamRow {
  id: string;
  workspaceId: string;
  userId: number | null;
  apiKeyId: number | null;
  voiceId: string;
  /** That were charged for. */
  characters: number;
  /** Of those, how many the listener has received for certain. */
  deliveredCharacters: number;
  /** `abandoned`: the listener left of their own accord. */
  state: 'speaking' | 'completed' | 'failed' | 'abandoned';
  /** A code, of one that failed. */
  error: string | null;
  durationMs: number | null;
  /** Where its audio is or was to be stored, until that is deleted. */
  audioKey: string | null;
  /** When it is to be deleted; null while it is spoken. */
  audioExpiresAt: Date | null;
  ownerNode: string;
  ownerBoot: string;
  createdAt: Date;
  endedAt: Date | null;
}

export type NewTtsStream = Omit<
  TtsStreamRow,
  'state' | 'error' | 'durationMs' | 'audioExpiresAt' | 'endedAt' | 'deliveredCharacters'
>;

/** Belongs into the transaction that charges for it. */
export async function insertTtsStream(tx: Tx, stream: NewTtsStream): Promise<void> {
  await tx`insert into tts_streams ${tx({ ...stream, state: 'speaking' })}`;
}

/** While it is spoken. */
export async function setDeliveredCharacters(
  sql: SqlOrTx,
  { id, characters }: { id: string; characters: number },
): Promise<void> {
  await sql`update tts_streams set delivered_characters = ${characters} where id = ${id} and state = 'speaking'`;
}

export interface TtsStreamEnd {
  id: string;
  state: 'completed' | 'failed' | 'abandoned';
  /** A code, when it failed. */
  error: string | null;
  durationMs: number | null;
  /** Until when its audio is kept. */
  audioExpiresAt: Date;
  now: Date;
}

/** Once: null when it has ended already, or there never was one. */
export async function endTtsStream(tx: Tx, end: TtsStreamEnd): Promise<TtsStreamRow | null> {
  const { id, state, error, durationMs, audioExpiresAt, now } = end;
  const [row] = await tx<TtsStreamRow[]>`
    update tts_streams set state = ${state}, error = ${error}, duration_ms = ${durationMs}, ended_at = ${now},
      audio_expires_at = case when audio_key is not null then ${audioExpiresAt}::timestamptz end
    where id = ${id} and state = 'speaking' returning *`;
  return row ?? null;
}

/** Those that a lost owner was speaking, oldest first. */
export async function lostTtsStreams(sql: SqlOrTx, lost: LostOwner): Promise<TtsStreamRow[]> {
  return await sql<TtsStreamRow[]>`
    select * from tts_streams where ${isOwnedBy(sql, lost)} and state = 'speaking'
    order by created_at, id`;
}

/** Those of a node whose audio is due to be deleted, the longest overdue first. */
export async function ttsStreamsWithExpiredAudio(
  sql: SqlOrTx,
  { node, now, limit }: { node: string; now: Date; limit: number },
): Promise<{ id: string; audioKey: string }[]> {
  return await sql<{ id: string; audioKey: string }[]>`
    select id, audio_key from tts_streams
    where audio_key is not null and audio_expires_at <= ${now} and owner_node = ${node}
    order by audio_expires_at, id limit ${limit}`;
}

/** Its audio is no more. */
export async function forgetTtsAudio(sql: SqlOrTx, id: string): Promise<void> {
  await sql`update tts_streams set audio_key = null, audio_expires_at = null where id = ${id}`;
}
