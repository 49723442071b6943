import type { SqlOrTx } from '../database.ts';

export interface RecordingSettings {
  /** Null: never. */
  retentionDays: number | null;
  /** Plays a tone to both parties when a recording starts, unless the placement decides. */
  beep: boolean;
}

interface StoredSettings {
  recordingRetentionDays: number | null;
  recordingBeep: boolean;
}

export async function getRecordingSettings(sql: SqlOrTx, workspaceId: string): Promise<RecordingSettings> {
  const [row] = await sql<StoredSettings[]>`
    select recording_retention_days, recording_beep from workspaces where id = ${workspaceId}`;
  return { retentionDays: row?.recordingRetentionDays ?? null, beep: row?.recordingBeep ?? false };
}

/** Writes only the given fields. */
export async function updateRecordingSettings(
  sql: SqlOrTx,
  workspaceId: string,
  { retentionDays, beep }: Partial<RecordingSettings>,
): Promise<RecordingSettings> {
  const changes = {
    ...(retentionDays !== undefined && { recordingRetentionDays: retentionDays }),
    ...(beep !== undefined && { recordingBeep: beep }),
  };
  if (Object.keys(changes).length > 0) {
    await sql`update workspaces set ${sql(changes)} where id = ${workspaceId}`;
  }
  return await getRecordingSettings(sql, workspaceId);
}
