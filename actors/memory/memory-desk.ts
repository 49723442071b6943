import type { ReadDocument } from '../../language/documents/document-reader.ts';
import type { TandemError } from '../../machines/errors.ts';
import type { MemoryEntities } from '../../storage/queries/memory-filter.ts';
import type { Page, PageOf } from '../../storage/queries/paging.ts';
import type { Role } from '../../storage/queries/workspaces.ts';

/** Memory as `http/` sees it. Implemented in `memory-desk.actor.ts`. */
export interface MemoryDesk {
  /**
   * Charges for each text and stores it, all in one transaction; then it is found by its words, and processed. A text
   * that its collection has already, with the same title and metadata, is not stored or charged again. Items that may
   * not be stored are told one by one, unless none may: then the first one's refusal is thrown.
   * @throws TandemError `POLICY_DENY`, `COLLECTION_NOT_FOUND`, `INSUFFICIENT_CREDITS` (nothing is stored),
   * `MEMORY_INFRA_NOT_READY`, `MEMORY_UNREACHABLE` (stored, to be processed later, and paid back), `SHUTTING_DOWN`
   */
  ingest(request: IngestRequest): Promise<Ingested>;
  /**
   * Before a document is read: whether it may be stored where it is to be.
   * @throws TandemError `POLICY_DENY`, `COLLECTION_NOT_FOUND`, `MEMORY_INFRA_NOT_READY`, `SHUTTING_DOWN`
   */
  requireMayStore(request: Pick<NewMemoryText, 'type' | 'collectionId'> & { by: MemoryCaller }): Promise<void>;
  /**
   * As `ingest`, of a document that was read, charged by the characters of its text: one memory for every 100 000 of
   * them at most, which is one but for the longest.
   * @throws TandemError as `ingest`
   */
  ingestDocument(request: IngestDocumentRequest): Promise<Ingested>;
  /** @throws TandemError `POLICY_DENY`, `COLLECTION_NOT_FOUND`, `INSUFFICIENT_CREDITS`, `MEMORY_INFRA_NOT_READY` */
  search(request: SearchRequest, signal: AbortSignal): Promise<Found>;
  /** As `search`, made into a text for a model. @throws TandemError also `VALIDATION_FAILED` when nobody says anything */
  context(request: ContextRequest, signal: AbortSignal): Promise<AssembledContext>;

  /** Those that the caller may see, newest first. @throws TandemError `VALIDATION_FAILED` of filters */
  list(request: ListRequest): Promise<PageOf<MemoryView>>;
  /** As in a list. @throws TandemError `MEMORY_NOT_FOUND` */
  status(key: MemoryKey): Promise<MemoryView>;
  /** With all of its text. @throws TandemError `MEMORY_NOT_FOUND` */
  get(key: MemoryKey): Promise<MemoryView>;
  /** Charges again. @throws TandemError `MEMORY_NOT_FOUND`, `MEMORY_NOT_FAILED`, `POLICY_DENY`, `INSUFFICIENT_CREDITS` */
  retry(key: MemoryKey): Promise<{ memory: MemoryView; charge: MemoryCharge }>;
  /**
   * Changes a memory. A new text is charged and processed again; until that is done, search finds its words. The same
   * text as before costs nothing, and a title or metadata never do.
   * @throws TandemError `MEMORY_NOT_FOUND`, `POLICY_DENY`, `INSUFFICIENT_CREDITS`, `VALIDATION_FAILED` if the metadata gets
   * too large, `MEMORY_INFRA_NOT_READY`, `MEMORY_UNREACHABLE` (as `ingest`), `SHUTTING_DOWN`
   */
  update(update: MemoryUpdate): Promise<{ memory: MemoryView; charge: MemoryCharge | null }>;
  /** What it says is gone for good. @throws TandemError `MEMORY_NOT_FOUND`, `POLICY_DENY` */
  remove(key: MemoryKey): Promise<void>;

  /** Those that the caller may see, among them their own. */
  collections(request: { by: MemoryCaller; page: Page; type: MemoryType | null }): Promise<PageOf<CollectionView>>;
  /** @throws TandemError `POLICY_DENY`, `COLLECTION_NAME_TAKEN`, `COLLECTION_LIMIT_REACHED`, `MEMBER_NOT_FOUND` */
  createCollection(request: CreateCollectionRequest): Promise<CollectionView>;
  /** With all memories in it. @throws TandemError `COLLECTION_NOT_FOUND`, `POLICY_DENY` */
  removeCollection(request: { collectionId: string; by: MemoryCaller }): Promise<{ memories: number }>;

  /** Of a month, `2026-01`; null: the one that it is. Of the whole workspace for its owners, else of the caller. */
  usage(request: { by: MemoryCaller; month: string | null }): Promise<MemoryUsage>;
}

/** Whose request it is. */
export interface MemoryCaller {
  workspaceId: string;
  userId: number;
  apiKeyId: number | null;
  role: Role;
  requestId: string;
  /** Names the charge, so that repeating the operation charges once. Default: a new name. */
  operationId?: string | null;
}

export type MemoryType = 'user' | 'team' | 'knowledge' | 'hive';

export interface NewMemoryText {
  /** 1 to 100 000 characters. */
  text: string;
  title: string | null;
  /** Of the collection when none is given: the caller's own, or the workspace's of that type. */
  type: 'user' | 'knowledge' | 'hive' | null;
  collectionId: string | null;
  /** Whether facts are to be extracted, where a model is configured. */
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
  /** As its sender calls it. */
  fileName: string | null;
  by: MemoryCaller;
}

export interface Ingested {
  /** That of the first memory that was taken. */
  collectionId: string;
  collectionLabel: string;
  memoryType: MemoryType;
  /** In the order of the request. */
  results: IngestedMemory[];
  /** Null when nothing was charged. */
  charge: MemoryCharge | null;
}

export type IngestedMemory =
  | {
      outcome: 'queued';
      id: string;
      collectionId: string;
      /** Characters that were charged. */
      characters: number;
    }
  /** It was there already. */
  | { outcome: 'deduplicated'; id: string; status: MemoryStatus; collectionId: string }
  | { outcome: 'refused'; refusal: TandemError };

/** Of all that a request was charged for; a request of many memories has an entry for each. */
export interface MemoryCharge {
  /** The first one's. */
  entryId: string;
  chargedNano: bigint;
  balanceAfterNano: bigint;
}

export type MemoryStatus = 'pending' | 'processing' | 'ready' | 'failed';
export type MemoryStage = 'extracting' | 'chunking' | 'embedding' | 'indexing';

export interface MemoryView {
  id: string;
  title: string | null;
  /** What was given; in lists only the beginning of it. */
  text: string;
  type: MemoryType;
  collectionId: string;
  status: MemoryStatus;
  /** While it is processed. */
  stage: MemoryStage | null;
  attempts: number;
  error: { code: string; message: string } | null;
  infer: boolean;
  /** What it is stored as: by facts, or by chunks alone; null until it is ready. */
  storedAs: 'facts' | 'chunks' | null;
  /** What was drawn from it, with its history; null in lists. */
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
  /** The fact of another memory that says the same. */
  deduplicatedInto: string | null;
  /** The fact that took its place. */
  supersededBy: string | null;
}

/** The document it was read from. */
export interface MemorySource {
  file_name: string | null;
  format: string;
  pages: number | null;
  ocr: boolean;
  warnings: readonly string[];
  /** Which of how many memories it became, from 1. */
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
  /** Of metadata. */
  filters: Readonly<Record<string, unknown>> | null;
  entities: MemoryEntities;
  page: Page;
}

export interface SearchRequest {
  query: string;
  /** Null: all that the caller may see. */
  collectionIds: readonly string[] | null;
  type: MemoryType | null;
  /** Of metadata. */
  filters: Readonly<Record<string, unknown>> | null;
  /** Whom the memories are about: all of these. */
  entities: MemoryEntities;
  limit: number;
  /** Least score, 0 to 1. */
  threshold: number | null;
  by: MemoryCaller;
}

export interface Found {
  hits: FoundMemory[];
  /** That were found, whether or not they are among the hits. */
  total: number;
  tookMs: number;
  /** Words or meaning could not be looked at, or not everywhere; then nothing is charged. */
  isDegraded: boolean;
  charge: MemoryCharge | null;
}

export interface FoundMemory {
  memoryId: string;
  /** The words that were found. */
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
  /** What is asked; or a conversation, of which what was said last is asked. */
  asked: { query: string } | { messages: readonly { role: string; content: string }[] };
  /** Of the text that is assembled, its frame included. */
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
  /** Beside the caller. Of teams alone. */
  memberIds: readonly number[];
  by: MemoryCaller;
}

export interface MemoryUsage {
  /** From inclusive, to exclusive. */
  from: Date;
  to: Date;
  totalNano: bigint;
  breakdown: { operation: string; count: number; units: number; amountNano: bigint }[];
  /** Null for whoever may not see it. */
  walletNano: bigint | null;
}
