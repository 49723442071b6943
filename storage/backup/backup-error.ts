import { isDiskFull } from '../../runtime/disk-full.ts';

/** Rejects a backup or restore, with one line of advice. */
export class BackupError extends Error {
  override readonly name = 'BackupError';
  readonly code: BackupErrorCode;

  constructor(code: BackupErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

export type BackupErrorCode =
  | 'BACKUP_EXISTS'
  | 'BACKUP_NOT_FOUND'
  | 'BACKUP_DAMAGED'
  | 'BACKUP_TOO_NEW'
  | 'OBJECT_CHANGED'
  | 'NOT_WRITTEN'
  | 'TARGET_NOT_EMPTY'
  | 'TARGET_IN_USE'
  | 'TARGET_TOO_NEW'
  | 'SECRET_KEY_REQUIRED'
  | 'SECRET_KEY_DIFFERS'
  | 'RESTORE_NOT_VERIFIED';

export const ROOM_FOR_BACKUP = 'Make room, then back up again.';
export const ROOM_FOR_RESTORE = 'Make room, then restore again.';

/** Asks for room if the disk of files, or of PostgreSQL (53100), is full. Returns any other error unchanged. */
export function explainFullDisk(error: unknown, advice: string): unknown {
  const { code, message } = error as NodeJS.ErrnoException;
  if (!isDiskFull(error) && code !== '53100') return error;
  return new BackupError('NOT_WRITTEN', `The disk is full: ${message}. ${advice}`, { cause: error });
}

/** Says why the database was lost during a restore: PostgreSQL crashes if its disk has no room for the log. */
export function explainOutage(error: unknown, crash: string | null): unknown {
  const fullDisk = explainFullDisk(error, ROOM_FOR_RESTORE);
  if (fullDisk !== error) return fullDisk;
  const reason = crash ?? (error as Error).message;
  const isFull = /No space left on device|Disk quota exceeded/.test(reason);
  const message = isFull
    ? `The disk is full: ${reason}. ${ROOM_FOR_RESTORE}`
    : `The database failed: ${reason}. See its log, then restore again.`;
  return new BackupError('NOT_WRITTEN', message, { cause: error });
}
