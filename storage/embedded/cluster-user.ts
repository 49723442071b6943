import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access, readFile, stat } from 'node:fs/promises';
import { TandemError } from '../../machines/errors.ts';

/** How to start a Postgres program: a command prefix and the user for `spawn`. */
export interface Launch {
  prefix: string[];
  uid?: number;
  gid?: number;
}

/** Users to run the cluster if we are root, which Postgres rejects. The first existing one is used. */
const CANDIDATE_USERS = ['tandem', 'postgres', 'nobody'];
const ROOT = 0;
/**
 * Capabilities to read and search despite permissions. The second also allows writing, but containers often have only
 * that.
 */
const CAPABILITIES = ['dac_read_search', 'dac_override'];

/**
 * Returns the user for a cluster's programs. Null unless we are root: then we run them. As root it is the cluster's
 * owner, or the first candidate. The user must have a name, because initdb looks it up.
 */
export async function clusterUser(clusterDir: string): Promise<{ uid: number; gid: number } | null> {
  if (process.getuid?.() !== ROOT) return null;
  const owner = await stat(clusterDir).catch(() => null);
  if (owner && owner.uid !== ROOT) return { uid: owner.uid, gid: owner.gid };
  const users = new Map<string, { uid: number; gid: number }>();
  for (const line of (await readFile('/etc/passwd', 'utf8')).split('\n')) {
    const [name = '', , uid, gid] = line.split(':');
    users.set(name, { uid: Number(uid), gid: Number(gid) });
  }
  for (const name of CANDIDATE_USERS) {
    const user = users.get(name);
    if (user && user.uid !== ROOT) return user;
  }
  throw new TandemError(
    'STORAGE_UNAVAILABLE',
    `The embedded Postgres does not run as root and none of the users ${CANDIDATE_USERS.join(', ')} exists: create one, or set DATABASE_URL.`,
  );
}

/**
 * Returns how to start the cluster's programs with access to their files and the data. The user may lack that access,
 * for example to a checkout below a root-only home. Then the programs keep the capability to search directories
 * (setpriv of util-linux, in every Debian).
 */
export async function launchFor(
  user: { uid: number; gid: number } | null,
  { binary, dataDir }: { binary: string; dataDir: string },
): Promise<Launch> {
  if (user === null) return { prefix: [] };
  const plain: Launch = { prefix: [], ...user };
  const { code, output } = await run(plain, ['/bin/sh', '-c', ':']);
  if (code !== 0) {
    throw new TandemError(
      'STORAGE_UNAVAILABLE',
      `The embedded Postgres does not run as root, and root may not become user id ${user.uid} here (${output}): ` +
        'start as an ordinary user, or set DATABASE_URL.',
    );
  }
  if (await canReach(plain, binary, dataDir)) return plain;
  for (const capability of CAPABILITIES) {
    const launch: Launch = {
      prefix: [
        'setpriv',
        `--reuid=${user.uid}`,
        `--regid=${user.gid}`,
        '--clear-groups',
        // Otherwise access(2), with which initdb searches its programs, ignores capabilities (capabilities(7)).
        '--securebits=+no_setuid_fixup',
        `--inh-caps=+${capability}`,
        `--ambient-caps=+${capability}`,
        '--',
      ],
    };
    if (await canReach(launch, binary, dataDir)) return launch;
  }
  throw new TandemError(
    'STORAGE_UNAVAILABLE',
    `The embedded Postgres runs as user id ${user.uid}, which cannot reach ${await firstClosed(binary, dataDir)}: ` +
      'move the program and TANDEM_DATA_DIR out of root-only directories, start as an ordinary user, or set DATABASE_URL.',
  );
}

/** Runs a command. Resolves with its exit code (null after a signal) and output. */
export function run(
  launch: Launch,
  command: string[],
  options: { env?: NodeJS.ProcessEnv } = {},
): Promise<{ code: number | null; output: string }> {
  const [file, ...args] = [...launch.prefix, ...command] as [string, ...string[]];
  return new Promise<{ code: number | null; output: string }>((resolve) => {
    // Throws at once if the user may not be changed.
    const child = spawn(file, args, {
      cwd: '/',
      env: options.env ?? process.env,
      stdio: ['ignore', 'pipe', 'pipe'],
      uid: launch.uid,
      gid: launch.gid,
    });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
    child.on('error', (error) => resolve({ code: null, output: error.message }));
    child.on('close', (code) => resolve({ code, output }));
  }).catch((error: Error) => ({ code: null, output: error.message }));
}

async function canReach(launch: Launch, binary: string, dataDir: string): Promise<boolean> {
  const { code } = await run(launch, ['/bin/sh', '-c', 'test -x "$1" && cd "$2"', 'sh', binary, dataDir]);
  return code === 0;
}

/** Returns the first directory on the path that others may not enter, for the error message. */
async function firstClosed(...targets: string[]): Promise<string> {
  for (const target of targets) {
    const parts = target.split('/').filter(Boolean);
    for (let depth = 1; depth <= parts.length; depth += 1) {
      const directory = `/${parts.slice(0, depth).join('/')}`;
      const info = await stat(directory).catch(() => null);
      if (info && (info.mode & constants.S_IXOTH) === 0) return directory;
    }
  }
  await access(targets[0]!);
  return targets.join(' or ');
}
