import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Config, loadConfig } from '../../config.ts';

const INSTALLATION = resolve(import.meta.dirname, '../..');

/**
 * Reads the settings of a server started from here. The server's folder is the current one if it contains `.env` or
 * `.data` or the environment names a data folder, else that of the installation, where `npm start` runs. It becomes the
 * working directory, because relative paths refer to it.
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
