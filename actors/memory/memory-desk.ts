import type { ReadDocument } from '../../language/documents/document-reader.ts';
import type { TandemError } from '../../machines/errors.ts';
import type { MemoryEntities } from '../../storage/queries/memory-filter.ts';
import type { Page, PageOf } from '../../storage/queries/paging.ts';
import type { Role } from '../../storage/queries/workspaces.ts';

/** Memory for `http/`. Implemented in `memory-desk.actor.ts`. */
export interface MemoryDesk {
  /**
   * Charges for texts and stores them, in one transaction. They are then found by keyword, and processed in the
   * background. A text that its collection already has, with the same title and metadata, is not stored or charged
   * again. Rejected items are reported one by one; if all are rejected, the first error is thrown.
   * @throws TandemError `POLICY_DENY`, `COLLECTION_NOT_FOUND`, `INSUFFICIENT_CREDITS` (nothing is stored),
   * `MEMORY_INFRA_NOT_READY`, `MEMORY_UNREACHABLE` (stored, to be processed later, and refunded), `SHUTTING_DOWN`
   */
  ingest(request: IngestRequest): Promise<Ingested>;
  /**
   * Checks, before a document is read, that it may be stored.
   * @throws TandemError `POLICY_DENY`, `COLLECTION_NOT_FOUND`, `MEMORY_INFRA_NOT_READY`, `SHUTTING_DOWN`
   */
  requireMayStore(request: Pick<NewMemoryText, 'type' | 'collectionId'> & { by: MemoryCaller }): Promise<void>;
  /**
   * As `ingest`, for a document, charged by the characters of its text. A memory has at most 100 000 characters, so
   * only the longest documents become several.
   * @throws TandemError as `ingest`
   */
  ingestDocument(request: IngestDocumentRequest): Promise<Ingested>;
  /** @throws TandemError `POLICY_DENY`, `COLLECTION_NOT_FOUND`, `INSUFFICIENT_CREDITS`, `MEMORY_INFRA_NOT_READY` */
  search(request: SearchRequest, signal: AbortSignal): Promise<Found>;
  /**
   * As `search`, but returns a text for a model. @throws TandemError also `VALIDATION_FAILED` if the conversation is
   * empty
   */
  context(request: ContextRequest, signal: AbortSignal): Promise<AssembledContext>;

  /**
   * Lists the memories that the caller may see, newest first. @throws TandemError `VALIDATION_FAILED` for invalid
   * filters
   */
  list(request: ListRequest): Promise<PageOf<MemoryView>>;
  /** Returns a memory as in a list. @throws TandemError `MEMORY_NOT_FOUND` */
  status(key: MemoryKey): Promise<MemoryView>;
  /** Returns a memory with its whole text. @throws TandemError `MEMORY_NOT_FOUND` */
  get(key: MemoryKey): Promise<MemoryView>;
  /**
   * Retries a failed memory and charges again. @throws TandemError `MEMORY_NOT_FOUND`, `MEMORY_NOT_FAILED`,
   * `POLICY_DENY`, `INSUFFICIENT_CREDITS`
   */
  retry(key: MemoryKey): Promise<{ memory: MemoryView; charge: MemoryCharge }>;
  /**
   * Changes a memory. A new text is charged and processed again; until then, search finds its keywords. An unchanged
   * text, the title and metadata are free.
   * @throws TandemError `MEMORY_NOT_FOUND`, `POLICY_DENY`, `INSUFFICIENT_CREDITS`, `VALIDATION_FAILED` if the metadata
   * gets too large, `MEMORY_INFRA_NOT_READY`, `MEMORY_UNREACHABLE` (as `ingest`), `SHUTTING_DOWN`
   */
  update(update: MemoryUpdate): Promise<{ memory: MemoryView; charge: MemoryCharge | null }>;
  /** Deletes a memory for good. @throws TandemError `MEMORY_NOT_FOUND`, `POLICY_DENY` */
  remove(key: MemoryKey): Promise<void>;

  /** Lists the collections that the caller may see, including their own. */
  collections(request: { by: MemoryCaller; page: Page; type: MemoryType | null }): Promise<PageOf<CollectionView>>;
  /** @throws TandemError `POLICY_DENY`, `COLLECTION_NAME_TAKEN`, `COLLECTION_LIMIT_REACHED`, `MEMBER_NOT_FOUND` */
  createCollection(request: CreateCollectionRequest): Promise<CollectionView>;
  /** Deletes a collection with all its memories. @throws TandemError `COLLECTION_NOT_FOUND`, `POLICY_DENY` */
  removeCollection(request: { collectionId: string; by: MemoryCaller }): Promise<{ memories: number }>;

  /** Usage in a month, `2026-01`; null: the current one. Owners see the whole workspace, others their own usage. */
  usage(request: { by: MemoryCaller; month: string | null }): Promise<MemoryUsage>;
}

export interface MemoryCaller {
  workspaceId: string;
  userId: number;
  apiKeyId: number | null;
  role: Role;
  requestId: string;
  /** Key of the charge, so that a repeated operation is charged once. Default: a new key. */
  operationId?: string | null;
}

export type MemoryType = 'user' | 'team' | 'knowledge' | 'hive';

export interface NewMemoryText {
  /** 1 to 100 000 characters. */
  text: string;
  title: string | null;
  /** Type of collection if no id is given: the caller's own, or the workspace's. */
  type: 'user' | 'knowledge' | 'hive' | null;
  collectionId: string | null;
  /** Extracts facts if a model is configured. */
  infer: boolean;
  metadata: Readonly<Record<string, unknown>>;
}

export interface IngestRequest {
  /** 1 to 100. */
  memories: readonly NewMemoryText[];
  by: MemoryCaller;
}

export interface IngestDocumentRequest extends Omit<NewMemoryText, 'text'> {
  document: ReadDocument;
  fileName: string | null;
  by: MemoryCaller;
}

export interface Ingested {
  /** Collection of the first stored memory. */
  collectionId: string;
  collectionLabel: string;
  memoryType: MemoryType;
  results: IngestedMemory[];
  /** Null if nothing was charged. */
  charge: MemoryCharge | null;
}

export type IngestedMemory =
  | {
      outcome: 'queued';
      id: string;
      collectionId: string;
      characters: number;
    }
  /** The collection already has it. */
  | { outcome: 'deduplicated'; id: string; status: MemoryStatus; collectionId: string }
  | { outcome: 'refused'; refusal: TandemError };

/** Total charge of a request. Each memory has its own ledger entry. */
export interface MemoryCharge {
  /** Id of the first entry. */
  entryId: string;
  chargedNano: bigint;
  balanceAfterNano: bigint;
}

export type MemoryStatus = 'pending' | 'processing' | 'ready' | 'failed';
export type MemoryStage = 'extracting' | 'chunking' | 'embedding' | 'indexing';

export interface MemoryView {
  id: string;
  title: string | null;
  /** The given text; in lists only its start. */
  text: string;
  type: MemoryType;
  collectionId: string;
  status: MemoryStatus;
  /** Null unless it is being processed. */
  stage: MemoryStage | null;
  attempts: number;
  error: { code: string; message: string } | null;
  infer: boolean;
  /** Stored as facts, or as chunks alone; null until it is ready. */
  storedAs: 'facts' | 'chunks' | null;
  /** Extracted facts with their history; null in lists. */
  facts: readonly MemoryFact[] | null;
  characters: number;
  metadata: Readonly<Record<string, unknown>>;
  source: MemorySource | null;
  createdBy: number;
  createdAt: Date;
  updatedAt: Date;
}

export interface MemoryFact {
  id: string;
  category: 'fact' | 'preference';
  text: string;
  /** Id of the fact in another memory that says the same. */
  deduplicatedInto: string | null;
  supersededBy: string | null;
}

export interface MemorySource {
  file_name: string | null;
  format: string;
  pages: number | null;
  ocr: boolean;
  warnings: readonly string[];
  /** Position among the document's memories, from 1. */
  part: number;
  parts: number;
}

export interface MemoryKey {
  memoryId: string;
  by: MemoryCaller;
}

export interface MemoryUpdate extends MemoryKey {
  /** 1 to 100 000 characters. Null: unchanged. */
  text: string | null;
  /** Null: none. Undefined: unchanged. */
  title: string | null | undefined;
  /** Keys to set, or with null to delete. Null: unchanged. */
  metadata: Readonly<Record<string, unknown>> | null;
}

export interface ListRequest {
  by: MemoryCaller;
  collectionId: string | null;
  status: MemoryStatus | null;
  type: MemoryType | null;
  /** Filters on metadata. */
  filters: Readonly<Record<string, unknown>> | null;
  entities: MemoryEntities;
  page: Page;
}

export interface SearchRequest {
  query: string;
  /** Null: all that the caller may see. */
  collectionIds: readonly string[] | null;
  type: MemoryType | null;
  /** Filters on metadata. */
  filters: Readonly<Record<string, unknown>> | null;
  /** Matches memories with all of these entities. */
  entities: MemoryEntities;
  limit: number;
  /** Minimum score, 0 to 1. */
  threshold: number | null;
  by: MemoryCaller;
}

export interface Found {
  hits: FoundMemory[];
  /** All matches, including those beyond the limit. */
  total: number;
  tookMs: number;
  /** Keyword or semantic search failed or was incomplete; then nothing is charged. */
  isDegraded: boolean;
  charge: MemoryCharge | null;
}

export interface FoundMemory {
  memoryId: string;
  /** The matching text. */
  text: string;
  title: string | null;
  score: number;
  scores: { semantic: number | null; keyword: number | null };
  collectionId: string;
  type: MemoryType;
  metadata: Readonly<Record<string, unknown>>;
  createdAt: Date;
}

export interface ContextRequest extends Omit<SearchRequest, 'limit' | 'query'> {
  /** A query, or a conversation whose last message is the query. */
  asked: { query: string } | { messages: readonly { role: string; content: string }[] };
  /** Limit of the assembled text, including its frame. */
  maxTokens: number;
}

export interface AssembledContext {
  text: string;
  tokens: number;
  sources: { id: string; score: number }[];
  isDegraded: boolean;
  charge: MemoryCharge | null;
}

export interface CollectionView {
  id: string;
  name: string;
  label: string;
  type: MemoryType;
  memoryCount: number;
  createdBy: number;
  createdAt: Date;
}

export interface CreateCollectionRequest {
  name: string;
  type: 'team' | 'knowledge' | 'hive';
  /** Members besides the caller; for teams only. */
  memberIds: readonly number[];
  by: MemoryCaller;
}

export interface MemoryUsage {
  /** From inclusive, to exclusive. */
  from: Date;
  to: Date;
  totalNano: bigint;
  breakdown: { operation: string; count: number; units: number; amountNano: bigint }[];
  /** Null if the caller may not see it. */
  walletNano: bigint | null;
}
