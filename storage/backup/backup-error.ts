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
