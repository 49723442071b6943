import { randomUUID } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { createDocumentReader } from '../../language/documents/confined-document-reader.ts';
import type { DocumentReader } from '../../language/documents/document-reader.ts';
import { TandemError } from '../../machines/errors.ts';
import { Gate } from '../../runtime/gate.ts';
import type { Sql } from '../../storage/database.ts';
import { requireCredits, walletOf } from '../../storage/ledger.ts';
import type { Limits } from '../../storage/limits/limits.ts';
import { costOf, priceBookOf } from '../../storage/price-book.ts';
import type { DocumentDesk } from './document-desk.ts';

export interface DocumentDeskOptions {
  sql: Sql;
  limits: Pick<Limits, 'acquireSlot'>;
  /** Folder of uploads, with a subfolder for each. */
  tempDir: string;
  /** Default: one process per document. */
  reader?: DocumentReader;
  /** Documents read at a time. Default: the number of processors. */
  lanes?: number;
}

export function createDocumentDesk(options: DocumentDeskOptions): DocumentDesk {
  const { sql, limits, tempDir, reader = createDocumentReader() } = options;
  const gate = new Gate({ inAll: options.lanes ?? availableParallelism() });
  const closing = new AbortController();

  return {
    async begin({ userId }) {
      closing.signal.throwIfAborted();
      const slot = await limits.acquireSlot({ userId, kind: 'document' });
      const folder = join(tempDir, `document-${randomUUID()}`);
      try {
        await mkdir(folder, { recursive: true, mode: 0o700 });
      } catch (error) {
        await slot.release();
        throw error;
      }
      const path = join(folder, 'upload');
      const over = new AbortController();
      let ended: Promise<void> | null = null;
      return {
        uploadPath: path,
        async read({ workspaceId, name, mediaType, signal }) {
          await requireFunds(sql, workspaceId);
          const either = AbortSignal.any([signal, closing.signal, over.signal]);
          return await gate.run(() => reader.read({ path, name, mediaType }, either), { signal: either });
        },
        end() {
          ended ??= end();
          return ended;
        },
      };

      async function end(): Promise<void> {
        over.abort(new TandemError('DOCUMENT_NOT_READABLE', 'Request cancelled.'));
        await rm(folder, { recursive: true, force: true }).finally(() => slot.release());
      }
    },

    async close() {
      closing.abort(new TandemError('SHUTTING_DOWN', 'The server is shutting down. Try again.'));
      await reader.close();
      await gate.idle();
    },
  };
}

/** Requires funds for one character, because the actual number is known later. */
async function requireFunds(sql: Sql, workspaceId: string): Promise<void> {
  const { amountNano } = costOf(await priceBookOf(sql, workspaceId), { service: 'memory', count: 1 });
  requireCredits(amountNano, await walletOf(sql, workspaceId));
}
