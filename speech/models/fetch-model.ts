import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { exists } from '../../runtime/exists.ts';
import { MANIFEST_NAME } from '../engines/sherpa-onnx/model-manifest.ts';
import { type CatalogueModel, findInCatalogue, type ModelKind } from './catalogue.ts';
import { type DownloadProgress, download } from './download.ts';
import { downloadPath } from './downloads.ts';
import { readLockFile, writeLockFile } from './lock-file.ts';
import { ModelError } from './model-error.ts';
import { type UnpackedFiles, unpack } from './unpack.ts';

export interface WantedModel {
  name: string;
  kind: ModelKind;
  url: string;
  /** Checksum of the archive; null if unknown. */
  sha256: string | null;
  /** Content of its manifest, if the archive has none. */
  manifest: object | null;
}

export interface FetchModelOptions {
  modelsDir: string;
  onProgress: (progress: DownloadProgress) => void;
  signal?: AbortSignal;
}

export interface FetchedModel {
  folder: string;
  sha256: string;
  bytes: number;
  files: number;
  /** Whether a checksum was known. If not, later downloads are compared with this one. */
  wasVerified: boolean;
}

/** Resolves a catalogue name or URL. Null if it is neither. */
export function wantedModel(
  nameOrUrl: string,
  given: { name?: string; kind?: ModelKind; sha256?: string } = {},
): WantedModel | null {
  const known = findInCatalogue(nameOrUrl);
  const url = known?.url ?? (URL.canParse(nameOrUrl) ? nameOrUrl : null);
  if (url === null || !/^https?:/.test(url)) return null;
  const file = decodeURIComponent(new URL(url).pathname.split('/').at(-1) ?? '');
  return {
    name: given.name ?? known?.name ?? file.replace(/\.(tar(\.\w+)?|tgz|tbz2?|txz)$/, ''),
    kind: given.kind ?? known?.kind ?? 'stt',
    url,
    sha256: given.sha256 ?? known?.sha256 ?? null,
    manifest: known === null ? null : manifestOf(known),
  };
}

/**
 * Downloads, verifies and unpacks a model. Its folder appears complete or not at all.
 * @throws ModelError
 */
export async function fetchModel(wanted: WantedModel, options: FetchModelOptions): Promise<FetchedModel> {
  const { modelsDir, onProgress, signal } = options;
  const { name, kind, url } = wanted;
  const folder = join(modelsDir, kind, name);
  if (await exists(folder)) {
    throw new ModelError('ALREADY_INSTALLED', `${folder} is there already: remove it to fetch the model anew`);
  }
  const lock = await readLockFile(modelsDir);
  const key = `${kind}/${name}`;
  // Fetched before from the same URL, so the checksum should be the same.
  const locked = lock[key]?.url === url ? lock[key].sha256 : null;
  const sha256 = wanted.sha256 ?? locked;
  const archive = downloadPath(modelsDir, url);
  const downloaded = await download({
    ...{ url, path: archive, sha256, mostBytes: MOST_DOWNLOAD_BYTES, onProgress },
    ...(signal !== undefined && { signal }),
  });
  await mkdir(join(modelsDir, kind), { recursive: true });
  const temporary = await mkdtemp(join(modelsDir, kind, '.unpacking-'));
  try {
    const unpacked = await unpack(archive, temporary, { mostFiles: MOST_FILES, mostBytes: MOST_UNPACKED_BYTES });
    const { root, files } = await modelIn(temporary, unpacked);
    if (wanted.manifest !== null && !(MANIFEST_NAME in files)) {
      await writeFile(join(root, MANIFEST_NAME), `${JSON.stringify(wanted.manifest, null, 2)}\n`);
    }
    const entry = { url, sha256: downloaded.sha256, fetchedAt: new Date().toISOString(), files };
    // In this order: the check reports an entry without its model, but not a model without an entry.
    await rename(root, folder);
    // Another model may have been fetched meanwhile.
    await writeLockFile(modelsDir, { ...(await readLockFile(modelsDir)), [key]: entry });
    await rm(archive, { force: true });
    const { bytes } = downloaded;
    const count = Object.keys(files).length;
    return { folder, sha256: downloaded.sha256, bytes, files: count, wasVerified: sha256 !== null };
  } catch (error) {
    // A bad archive stays bad. A missing program can be installed.
    if (error instanceof ModelError && error.code === 'BAD_ARCHIVE') await rm(archive, { force: true });
    throw error;
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}

const MOST_DOWNLOAD_BYTES = 8_000_000_000;
const MOST_UNPACKED_BYTES = 16_000_000_000;
const MOST_FILES = 10_000;

function manifestOf({ kind, type, languages }: CatalogueModel): object | null {
  if (kind === 'tts') return null;
  const manifest = { ...(type !== null && { type }), ...(languages.length > 0 && { languages }) };
  return Object.keys(manifest).length === 0 ? null : manifest;
}

/** Archives contain one folder with the model, or its files directly. */
async function modelIn(folder: string, files: UnpackedFiles): Promise<{ root: string; files: UnpackedFiles }> {
  const [only, second] = await readdir(folder, { withFileTypes: true });
  if (only === undefined || second !== undefined || !only.isDirectory()) return { root: folder, files };
  const below = Object.entries(files).map(([path, file]) => [path.slice(only.name.length + 1), file] as const);
  return { root: join(folder, only.name), files: Object.fromEntries(below) };
}
