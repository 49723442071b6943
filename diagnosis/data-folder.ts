import { access, constants, mkdtemp, readFile, rmdir, stat, statfs } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import type { Config } from '../config.ts';
import { exists } from '../runtime/exists.ts';
import { type Finding, fail, ok, reasonOf, warn } from './finding.ts';

const LITTLE_BYTES = 1e9;
/** Stereo WAV with 8,000 samples a second and 16 bits. */
const RECORDING_BYTES_PER_HOUR = 8_000 * 2 * 2 * 3_600;

export async function checkDataFolder(config: Config): Promise<Finding[]> {
  const folder = resolve(config.dataDir);
  return [await checkWritable(folder), await checkDisk(folder), await checkSecretKey(folder, config)];
}

async function checkWritable(folder: string): Promise<Finding> {
  const nearest = await nearestExisting(folder);
  try {
    if (!(await stat(nearest)).isDirectory()) throw new Error(`${nearest} is not a folder`);
    await access(nearest, constants.W_OK | constants.X_OK);
    // /proc and others permit writing and yet reject new folders.
    if (nearest !== folder) await rmdir(await mkdtemp(join(nearest, '.tandem-')));
  } catch (error) {
    const advice = 'Give it to the user that runs the server, or set TANDEM_DATA_DIR to another one.';
    return fail('data folder', `${folder} cannot be written to: ${reasonOf(error)}`, advice);
  }
  return ok('data folder', nearest === folder ? folder : `${folder}; the first start makes it`);
}

async function checkDisk(folder: string): Promise<Finding> {
  try {
    const { bavail, bsize } = await statfs(await nearestExisting(folder));
    const free = bavail * bsize;
    const message = `${(free / 1e9).toFixed(1)} GB free: ${Math.floor(free / RECORDING_BYTES_PER_HOUR)} hours of recordings`;
    if (free >= LITTLE_BYTES) return ok('disk', message);
    return warn('disk', message, 'Make room, or set TANDEM_DATA_DIR to a folder on a larger disk.');
  } catch (error) {
    return warn('disk', `Free space unknown: ${reasonOf(error)}`, 'Look with df.');
  }
}

/** Checks the key that encrypts trunk passwords and callback secrets. */
async function checkSecretKey(folder: string, config: Config): Promise<Finding> {
  const check = 'secret key';
  if (config.secretKey !== null) return ok(check, 'from TANDEM_SECRET_KEY');
  const file = join(folder, 'secret-key');
  try {
    const text = (await readFile(file, 'utf8')).trim();
    if (Buffer.from(text, 'base64').length !== 32) {
      return fail(check, `${file} does not hold 32 bytes in base64.`, 'Restore it from a backup.');
    }
    const { mode } = await stat(file);
    if ((mode & 0o077) !== 0) return warn(check, `${file} can be read by others.`, `Run chmod 600 ${file}.`);
    return ok(check, `${file}: keep a copy, because without it encrypted secrets cannot be read`);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') {
      return fail(
        check,
        `${file} cannot be read: ${reasonOf(error)}`,
        'Run the doctor as the user that runs the server.',
      );
    }
  }
  if (await exists(join(folder, 'node-id'))) {
    const advice = 'Restore it from a backup, or set TANDEM_SECRET_KEY to the key that was in it.';
    return fail(check, `${file} is missing, and a server ran here before.`, advice);
  }
  if (config.databaseUrl !== null) {
    const advice =
      'Set TANDEM_SECRET_KEY (openssl rand -base64 32) when several nodes, or a new folder, share the database.';
    return warn(check, `The first start makes ${file}, known to this node alone.`, advice);
  }
  return ok(check, `the first start makes ${file}`);
}

async function nearestExisting(path: string): Promise<string> {
  for (let at = path; ; at = dirname(at)) if ((await exists(at)) || dirname(at) === at) return at;
}
