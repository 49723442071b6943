import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Config, loadConfig } from '../../config.ts';

const INSTALLATION = resolve(import.meta.dirname, '../..');

/**
 * The settings a server started from here would have. A folder with a `.env` or `.data` of its own counts as the place
 * of a server, and so does one for which the environment names a data folder; from anywhere else it is that of the
 * installation, where `npm start` runs. That folder becomes the working directory, as relative paths are meant from it.
 * @throws ConfigError
 */
export function readSettings(): Config {
  enterServerFolder();
  return loadConfig(process.env);
}

export function enterServerFolder(): void {
  const isServerFolder = existsSync('.env') || existsSync('.data');
  if (!isServerFolder && !process.env.TANDEM_DATA_DIR) process.chdir(INSTALLATION);
}
