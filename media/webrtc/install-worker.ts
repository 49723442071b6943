import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { arch, platform, release } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { defaultWorkerPath, mediasoupFolder } from './worker-binary.ts';

/**
 * Downloads mediasoup's worker program for this platform, checks that it runs, and installs it where mediasoup looks
 * for it. mediasoup's own install script would compile for minutes if it cannot download.
 * @returns the path of the program @throws Error with a readable message
 */
export async function installWorker({
  timeoutMs,
  folder = mediasoupFolder(),
}: {
  timeoutMs: number;
  /** Folder of the package mediasoup. */
  folder?: string | null;
}): Promise<string> {
  if (folder === null) throw new Error('the package mediasoup is not installed: run npm ci with optional dependencies');
  const archive = await download(archiveUrl(folder), timeoutMs);
  const path = defaultWorkerPath(folder);
  mkdirSync(dirname(path), { recursive: true });
  const unpacked = mkdtempSync(join(dirname(path), 'unpacking-'));
  try {
    await unpack(archive, unpacked);
    const program = join(unpacked, basename(path));
    requireRunning(program);
    renameSync(program, path);
  } finally {
    rmSync(unpacked, { recursive: true, force: true });
  }
  return path;
}

/** The URL that mediasoup's own install script uses. */
function archiveUrl(folder: string): string {
  const { version, repository } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
    version: string;
    repository: { url: string };
  };
  const releases = `${repository.url.replace(/^git\+/, '').replace(/\.git$/, '')}/releases/download`;
  const base = process.env.MEDIASOUP_WORKER_PREBUILT_DOWNLOAD_BASE_URL || releases;
  const kernel = platform() === 'linux' ? `-kernel${release().split('.')[0]}` : '';
  return `${base}/${version}/mediasoup-worker-${version}-${platform()}-${arch()}${kernel}.tgz`;
}

async function download(url: string, timeoutMs: number): Promise<Uint8Array> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(timeoutMs) });
    if (response.status === 404) throw new Error('mediasoup publishes no worker program for this platform');
    if (!response.ok) throw new Error(`the server answered ${response.status}`);
    return new Uint8Array(await response.arrayBuffer());
  } catch (error) {
    const { message, cause } = error as Error;
    const detail = cause instanceof Error ? cause.message || (cause as NodeJS.ErrnoException).code : message;
    throw new Error(`the worker program cannot be downloaded: ${detail}`, { cause: error });
  }
}

async function unpack(archive: Uint8Array, into: string): Promise<void> {
  const tar = spawn('tar', ['-xzf', '-', '-C', into], { stdio: ['pipe', 'ignore', 'pipe'] });
  tar.stdin.on('error', () => {}).end(archive);
  const failed = new Promise<never>((_, reject) => tar.once('error', reject));
  const exited = new Promise<number | null>((resolve) => tar.once('close', resolve));
  const complaint = buffer(tar.stderr);
  const code = await Promise.race([exited, failed]);
  if (code !== 0) throw new Error(`the downloaded archive cannot be unpacked: ${(await complaint).toString().trim()}`);
}

/** Without a version in its environment, the program exits with this code at once. */
const EXIT_CODE_WITHOUT_VERSION = 41;

function requireRunning(program: string): void {
  const { status, error } = spawnSync(program, { env: {}, stdio: 'ignore', timeout: 10_000 });
  if (status === EXIT_CODE_WITHOUT_VERSION) return;
  throw new Error(`the downloaded worker program does not run here (${error?.message ?? `exit code ${status}`})`);
}
