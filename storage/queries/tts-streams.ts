import { inTransaction, type SqlOrTx, type Tx } from '../database.ts';
import { notLater } from './due-times.ts';
import { leaveToOwner } from './erasures.ts';
import { isOwnedBy, type LostOwner } from './nodes.ts';

/** A charged synthesis request. */
export interface TtsStreamRow {
  id: string;
  workspaceId: string;
  userId: number | null;
  apiKeyId: number | null;
  voiceId: string;
  characters: number;
  /** Characters that the listener has received for certain. */
  deliveredCharacters: number;
  /** `abandoned`: the listener left. */
  state: 'speaking' | 'completed' | 'failed' | 'abandoned';
  error: string | null;
  durationMs: number | null;
  /** Object key of its audio, stored or not; null after deletion. */
  audioKey: string | null;
  /** When its audio is deleted; null during synthesis. */
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

/** Run it in the transaction of its charge. */
export async function insertTtsStream(tx: Tx, stream: NewTtsStream): Promise<void> {
  await tx`insert into tts_streams ${tx({ ...stream, state: 'speaking' })}`;
}

/** No effect after the end. */
export async function setDeliveredCharacters(
  sql: SqlOrTx,
  { id, characters }: { id: string; characters: number },
): Promise<void> {
  await sql`update tts_streams set delivered_characters = ${characters} where id = ${id} and state = 'speaking'`;
}

export interface TtsStreamEnd {
  id: string;
  state: 'completed' | 'failed' | 'abandoned';
  error: string | null;
  durationMs: number | null;
  audioExpiresAt: Date;
  now: Date;
}

/** Ends a request once. Null if it had already ended or does not exist. */
export async function endTtsStream(tx: Tx, end: TtsStreamEnd): Promise<TtsStreamRow | null> {
  const { id, state, error, durationMs, audioExpiresAt, now } = end;
  const [row] = await tx<TtsStreamRow[]>`
    update tts_streams set state = ${state}, error = ${error}, duration_ms = ${durationMs}, ended_at = ${now},
      audio_expires_at = case when audio_key is not null then ${audioExpiresAt}::timestamptz end
    where id = ${id} and state = 'speaking' returning *`;
  return row ?? null;
}

/** Returns a lost owner's unfinished requests, oldest first. */
export async function lostTtsStreams(sql: SqlOrTx, lost: LostOwner): Promise<TtsStreamRow[]> {
  return await sql<TtsStreamRow[]>`
    select * from tts_streams where ${isOwnedBy(sql, lost)} and state = 'speaking'
    order by created_at, id`;
}

/** Returns requests with expired audio, longest overdue first. `node`: only those with audio on its disk. */
export async function ttsStreamsWithExpiredAudio(
  sql: SqlOrTx,
  { node, now, limit }: { node: string | null; now: Date; limit: number },
): Promise<{ id: string; audioKey: string }[]> {
  return await sql<{ id: string; audioKey: string }[]>`
    select id, audio_key from tts_streams
    where audio_key is not null and audio_expires_at <= ${notLater(sql, now)}
      ${node === null ? sql`` : sql`and owner_node = ${node}`}
    order by audio_expires_at, id limit ${limit}`;
}

/** Call it once the audio is deleted. Another node that made it may not have uploaded it yet; its eraser deletes that. */
export async function forgetTtsAudio(
  sql: SqlOrTx,
  id: string,
  { node, now }: { node: string; now: Date },
): Promise<void> {
  await inTransaction(sql, async (tx) => {
    const [stream] = await tx<{ workspaceId: string; ownerNode: string; audioKey: string }[]>`
      select workspace_id, owner_node, audio_key from tts_streams
      where id = ${id} and audio_key is not null for no key update`;
    if (!stream) return;
    await tx`update tts_streams set audio_key = null, audio_expires_at = null where id = ${id}`;
    const { workspaceId, ownerNode, audioKey } = stream;
    if (ownerNode !== node) await leaveToOwner(tx, { workspaceId, ownerNode, keys: [audioKey], now });
  });
}
