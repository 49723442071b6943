/** A model is unavailable. The message is one line for people. */
export class ModelError extends Error {
  override readonly name = 'ModelError';
  readonly code: ModelErrorCode;

  constructor(code: ModelErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

export type ModelErrorCode =
  /** The server is unreachable or its response invalid. The partial file is kept. */
  | 'DOWNLOAD_FAILED'
  /** The checksum differs. The file is deleted. */
  | 'CHECKSUM_MISMATCH'
  /** The archive is invalid or unsafe. */
  | 'BAD_ARCHIVE'
  /** The program that unpacks it is not installed. */
  | 'MISSING_PROGRAM'
  | 'ALREADY_INSTALLED'
  | 'BAD_LOCK_FILE';
