import { apiClient } from '../../bin/cli/api-client.ts';
import { loadConfig } from '../../config.ts';
import { createLogger } from '../../logging.ts';
import { startTandem } from '../../main.ts';
import { connect, type Sql } from '../../storage/database.ts';
import { API_KEY, clean, dataFolder, environment } from '../process/ready-server.ts';
import { askTestRun } from '../test-run.ts';

/** The whole server, in the process of the test and on the Postgres that all test files share. */
export interface ConsoleServer {
  url: string;
  workspaceId: string;
  api: ReturnType<typeof apiClient>;
  sql: Sql;
  /** Path of a login link of the owner, as the server prints at its start. */
  ownerLogin(): Promise<string>;
  /** Ends live calls and closes the server. */
  stop(): Promise<void>;
  /** Starts it again, at the same URL, after `stop`. */
  start(): Promise<void>;
}

/** Starts a server, which `cleanUp` of `ready-server.ts` closes. */
export async function startConsoleServer(env: Record<string, string> = {}): Promise<ConsoleServer> {
  // Tests see the sources of the checkout, not an earlier build. The first test file of a run builds for all.
  await askTestRun('/console');
  const variables = environment(await dataFolder(), env);
  const sql = connect({ url: variables.DATABASE_URL!, max: 2 });
  clean.push(() => sql.end());
  const start = (PORT: string) =>
    startTandem(loadConfig({ ...variables, PORT }), { logger: createLogger({ level: 'silent' }), warmUp: false });
  let tandem = await start('0');
  const { url, workspaceId } = tandem;
  clean.push(() => tandem.stop());
  return {
    url,
    workspaceId,
    api: apiClient({ url, apiKey: API_KEY }),
    sql,
    async ownerLogin() {
      const path = await tandem.createOwnerLogin();
      if (path === null) throw new Error('the owner has a password');
      return path;
    },
    stop: () => tandem.stop(),
    async start() {
      tandem = await start(new URL(url).port);
    },
  };
}
