import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access, readFile, stat } from 'node:fs/promises';
import { TandemError } from '../../machines/errors.ts';

/** How a Postgres program has to be started: a prefix for the command and the identity for `spawn`. */
export interface Launch {
  prefix: string[];
  uid?: number;
  gid?: number;
}

/** Users that may run the cluster when we are root, which Postgres refuses to be. The first that exists is taken. */
const CANDIDATE_USERS = ['tandem', 'postgres', 'nobody'];
const ROOT = 0;
/** Read and search past permissions; the second writes past them too, but is the one a container has. */
const CAPABILITIES = ['dac_read_search', 'dac_override'];

/**
 * Who runs the programs of a cluster. Null when we are not root: then we do. As root it is the owner of the cluster
 * that is there, else one of the candidates. The user must have a name: initdb looks it up.
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
 * How to start the cluster's programs so that they reach their own files and the data. The user need not be able to
 * get there: a checkout or a data directory below a root-only home is common. Then the programs keep the capability
 * to search directories (setpriv of util-linux, which is on every Debian), which their user otherwise has not.
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
        // Without it access(2), by which initdb looks for its programs, leaves capabilities out (capabilities(7)).
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

/** Runs a command as the launch says. Resolves with its exit code (null after a signal) and what it wrote. */
export function run(
  launch: Launch,
  command: string[],
  options: { env?: NodeJS.ProcessEnv } = {},
): Promise<{ code: number | null; output: string }> {
  const [file, ...args] = [...launch.prefix, ...command] as [string, ...string[]];
  return new Promise<{ code: number | null; output: string }>((resolve) => {
    // Throws at once when the user may not be changed.
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

/** The first directory on the way that others may not enter, to name it in the error. */
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
