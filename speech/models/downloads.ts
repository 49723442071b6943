import { createHash } from 'node:crypto';
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { CATALOGUE, type ModelKind } from './catalogue.ts';

/** A download in progress or interrupted. */
export interface ModelDownload {
  /** Null if it was fetched by URL. */
  model: string | null;
  kind: ModelKind | null;
  bytes: number;
  /** Approximate; null if unknown. */
  totalBytes: number | null;
  /** When the last bytes arrived. */
  updatedAt: Date;
}

/** Path of the partial file. */
export function downloadPath(modelsDir: string, url: string): string {
  return join(modelsDir, FOLDER, nameOf(url));
}

/** Lists downloads, unordered. [] if the folder does not exist. */
export async function listDownloads(modelsDir: string): Promise<ModelDownload[]> {
  const folder = join(modelsDir, FOLDER);
  const names = await readdir(folder).catch(() => []);
  const byName = new Map(CATALOGUE.map((model) => [nameOf(model.url), model]));
  const downloads = names
    .filter((name) => /^[0-9a-f]{32}$/.test(name))
    .map(async (name): Promise<ModelDownload | null> => {
      const file = await stat(join(folder, name)).catch(() => null);
      if (file === null) return null;
      const known = byName.get(name) ?? null;
      return {
        model: known?.name ?? null,
        kind: known?.kind ?? null,
        bytes: file.size,
        totalBytes: known?.downloadMb ? Math.max(file.size, known.downloadMb * 1e6) : null,
        updatedAt: file.mtime,
      };
    });
  return (await Promise.all(downloads)).filter((download) => download !== null);
}

const FOLDER = '.downloads';

function nameOf(url: string): string {
  return createHash('sha256').update(url).digest('hex').slice(0, 32);
}
