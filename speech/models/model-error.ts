/** What a person is told when a model cannot be had: one line. */
export class ModelError extends Error {
  override readonly name = 'ModelError';
  readonly code: ModelErrorCode;

  constructor(code: ModelErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

export type ModelErrorCode =
  /** No server, or it answers with something else. What was fetched so far is kept. */
  | 'DOWNLOAD_FAILED'
  /** It is not what it should be. What was fetched is thrown away. */
  | 'CHECKSUM_MISMATCH'
  /** It cannot or must not be unpacked. */
  | 'BAD_ARCHIVE'
  /** A program that unpacks it is not installed. */
  | 'MISSING_PROGRAM'
  | 'ALREADY_INSTALLED'
  | 'BAD_LOCK_FILE';
