import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, lstat, open, readdir, rename, rm, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { makeFolder } from '../../runtime/make-folder.ts';
import { decodeClause, encodeClause, type FinishedClause } from './cached-clause.ts';

export interface SpeechCacheOptions {
  folder: string;
  /** Limit of all files together; 0 disables the cache. */
  mostBytes: number;
  /** Called when writing fails, for example because the disk is full. */
  onTrouble?: (error: unknown) => void;
}

/** Longer clauses are rare and seldom repeated. */
const MOST_ENTRY_BYTES = 5_000_000;
/** Pending writes are held in memory; further clauses are not cached. */
const MOST_WRITES = 8;
const PAUSE_MS = 600_000;
const LONGEST_WRITE_MS = 600_000;
const KEY = /^[0-9a-f]{64}$/;
/** A file being written, or left over from a server that ended if it is old. Other servers may share the folder. */
const TEMPORARY = /^[0-9a-f]{64}\.[0-9a-f]{16}\.tmp$/;

/**
 * Caches clauses in files named by their keys, with least-recently-used eviction. Any problem with the folder or a file
 * only disables the cache.
 */
export class SpeechCache {
  readonly #options: SpeechCacheOptions;
  /** Size by key, least recently used first; complete after the scan. */
  readonly #sizes = new Map<string, number>();
  readonly #scanned: Promise<void>;
  readonly #writes = new Set<Promise<void>>();
  #bytes = 0;
  #pausedUntilMs = 0;

  constructor(options: SpeechCacheOptions) {
    this.#options = options;
    this.#scanned = this.#isOff ? Promise.resolve() : this.#scan().catch((error: unknown) => this.#pause(error));
  }

  /** Null if not cached. `key` is a hexadecimal SHA-256. */
  async get(key: string): Promise<FinishedClause | null> {
    if (this.#isOff) return null;
    await this.#scanned;
    if (!this.#sizes.has(key)) return null;
    const bytes = await this.#read(key);
    const clause = bytes === null ? null : decodeClause(key, bytes);
    if (clause === null) {
      await this.#forget(key);
      return null;
    }
    this.#use(key, bytes!.length);
    const now = new Date();
    utimes(this.#pathOf(key), now, now).catch(() => {});
    return clause;
  }

  /** Writes in the background, on a best-effort basis. */
  put(key: string, clause: FinishedClause): void {
    const bytes = clause.samples.length * 2 + clause.marks.length * 16;
    const isTooLong = bytes > Math.min(MOST_ENTRY_BYTES, this.#options.mostBytes / 2);
    if (this.#isOff || isTooLong || this.#writes.size >= MOST_WRITES || performance.now() < this.#pausedUntilMs) return;
    const write = this.#write(key, clause)
      .catch((error: unknown) => this.#pause(error))
      .finally(() => this.#writes.delete(write));
    this.#writes.add(write);
  }

  /** Resolves when all pending writes are done. */
  async settled(): Promise<void> {
    await this.#scanned;
    while (this.#writes.size > 0) await Promise.all(this.#writes);
  }

  get #isOff(): boolean {
    return this.#options.mostBytes <= 0;
  }

  async #scan(): Promise<void> {
    const { folder } = this.#options;
    await this.#makeFolder();
    const found: { key: string; size: number; usedMs: number }[] = [];
    for (const name of await readdir(folder)) {
      if (!KEY.test(name) && !TEMPORARY.test(name)) continue;
      const { size, mtimeMs } = await lstat(join(folder, name)).catch(() => ({ size: 0, mtimeMs: Date.now() }));
      if (KEY.test(name)) found.push({ key: name, size, usedMs: mtimeMs });
      else if (mtimeMs < Date.now() - LONGEST_WRITE_MS) await rm(join(folder, name), { force: true });
    }
    for (const { key, size } of found.sort((a, b) => a.usedMs - b.usedMs)) this.#use(key, size);
    await this.#makeRoom();
  }

  async #makeFolder(): Promise<void> {
    await makeFolder(this.#options.folder);
  }

  async #read(key: string): Promise<Buffer | null> {
    let file: FileHandle | null = null;
    try {
      file = await open(this.#pathOf(key), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
      const status = await file.stat();
      // Guards against an endless special file.
      return status.isFile() && status.size <= 2 * MOST_ENTRY_BYTES ? await file.readFile() : null;
    } catch {
      return null;
    } finally {
      await file?.close();
    }
  }

  async #write(key: string, clause: FinishedClause): Promise<void> {
    await this.#scanned;
    // The cache may have been deleted by hand.
    await this.#makeFolder();
    const bytes = encodeClause(key, clause);
    const temporary = `${this.#pathOf(key)}.${randomBytes(8).toString('hex')}.tmp`;
    try {
      const file = await open(temporary, 'wx', 0o600);
      try {
        await file.writeFile(bytes);
      } finally {
        await file.close();
      }
      await rename(temporary, this.#pathOf(key));
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => {});
      throw error;
    }
    this.#use(key, bytes.length);
    await this.#makeRoom();
  }

  async #makeRoom(): Promise<void> {
    for (const key of this.#sizes.keys()) {
      if (this.#bytes <= this.#options.mostBytes) return;
      await this.#forget(key);
    }
  }

  #use(key: string, size: number): void {
    this.#bytes += size - (this.#sizes.get(key) ?? 0);
    this.#sizes.delete(key);
    this.#sizes.set(key, size);
  }

  async #forget(key: string): Promise<void> {
    this.#bytes -= this.#sizes.get(key) ?? 0;
    this.#sizes.delete(key);
    await rm(this.#pathOf(key), { force: true, recursive: true }).catch(() => {});
  }

  #pause(error: unknown): void {
    this.#pausedUntilMs = performance.now() + PAUSE_MS;
    this.#options.onTrouble?.(error);
  }

  #pathOf(key: string): string {
    return join(this.#options.folder, key);
  }
}
