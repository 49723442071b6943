import type { ReadDocument } from '../../language/documents/document-reader.ts';

/** Reading of documents as `http/` sees it. Implemented in `document-desk.actor.ts`. */
export interface DocumentDesk {
  /**
   * Takes one of the user's slots, before anything is uploaded.
   * @throws TandemError `DOCUMENT_CONCURRENCY_LIMIT`, `SHUTTING_DOWN`
   */
  begin(request: { userId: number }): Promise<PendingDocument>;
  /** What is being read is given up. */
  close(): Promise<void>;
}

export interface PendingDocument {
  /** Where the upload goes; removed when this ends. */
  readonly uploadPath: string;
  /**
   * Waits for its turn: so many are read at a time as there are processors. Nothing is read for an empty wallet.
   * @throws TandemError `INSUFFICIENT_CREDITS`, the `DOCUMENT_` codes; the signal's reason, also while it waits
   */
  read(options: ReadOptions): Promise<ReadDocument>;
  /** Gives the slot back and removes the file. Whoever began calls it, however it went. Idempotent. */
  end(): Promise<void>;
}

export interface ReadOptions {
  /** Who pays. */
  workspaceId: string;
  name: string | null;
  mediaType: string | null;
  signal: AbortSignal;
}
