import type { ReadDocument } from '../../language/documents/document-reader.ts';

/** Reads documents for `http/`. Implemented in `document-desk.actor.ts`. */
export interface DocumentDesk {
  /**
   * Takes one of the user's slots, before the upload.
   * @throws TandemError `DOCUMENT_CONCURRENCY_LIMIT`, `SHUTTING_DOWN`
   */
  begin(request: { userId: number }): Promise<PendingDocument>;
  close(): Promise<void>;
}

export interface PendingDocument {
  /** Path of the upload; removed at the end. */
  readonly uploadPath: string;
  /**
   * Reads the document in turn: as many at a time as there are processors. Rejects an empty wallet.
   * @throws TandemError `INSUFFICIENT_CREDITS`, the `DOCUMENT_` codes; the signal's reason, also while waiting
   */
  read(options: ReadOptions): Promise<ReadDocument>;
  /** Releases the slot and removes the file. Always call it. Idempotent. */
  end(): Promise<void>;
}

export interface ReadOptions {
  /** Workspace to charge. */
  workspaceId: string;
  name: string | null;
  mediaType: string | null;
  signal: AbortSignal;
}
