import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { type Config, loadConfig, mapPaths } from '../../config.ts';
import { type CommandHost, pathIn } from './host.ts';

const INSTALLATION = resolve(import.meta.dirname, '../..');

/**
 * Reads the settings of a server started from here. The server's folder is the working directory if it contains `.env`
 * or `.data` or the environment names a data folder, else that of the installation, where `npm start` runs. Relative
 * paths among the settings refer to it.
 * @throws ConfigError
 */
export function readSettings(host: CommandHost): Config {
  const cwd = host.cwd();
  const isServerFolder = ['.env', '.data'].some((name) => existsSync(resolve(cwd, name)));
  const folder = isServerFolder || host.env.TANDEM_DATA_DIR ? cwd : INSTALLATION;
  return mapPaths(loadConfig(host.env, [], pathIn(folder, '.env')), (path) => pathIn(folder, path));
}
