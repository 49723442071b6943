import { execFile } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'vitest';
import { freePorts } from './free-ports.ts';
import { inheritedEnvironment } from './process/server-process.ts';
import { ROOT } from './root.ts';

/** The port of the callback receiver in the guides. */
const GUIDE_PORT = '4711';

export interface GuidePath extends AsyncDisposable {
  /** A copy of the repository by links, with the files that the guide creates. */
  folder: string;
  /** Standard output of each block of commands, without the one that starts the server. */
  steps: string[];
}

/** The server of a test, in place of the one that the guide starts. */
export interface GuideServer {
  url: string;
  apiKey: string;
  /** Its settings, for commands that read them. */
  env: Record<string, string>;
}

/** Does what a page says below "Ten minutes": saves its files, then runs its commands in one shell. */
export async function followGuide(
  page: string,
  { start, server }: { start: string; server: GuideServer },
): Promise<GuidePath> {
  const [, section] = /\n## Ten minutes\n([\s\S]*?)\n## /.exec(await readFile(join(ROOT, `docs/${page}.md`), 'utf8'))!;
  const port = String(await freePorts(1));
  const blocks = [...section!.matchAll(/^```(sh|js)\n([\s\S]*?)^```$/gm)].map(([, language, text]) => ({
    language,
    text: text!
      .replaceAll(GUIDE_PORT, port)
      .replaceAll('http://127.0.0.1:8080', server.url)
      .replaceAll('localhost:8080', new URL(server.url).host)
      .replaceAll('sk_...', server.apiKey),
  }));
  const folder = await mkdtemp(join(tmpdir(), 'tandem-guides-'));
  const remove = () => rm(folder, { recursive: true, force: true });
  try {
    for (const entry of await readdir(ROOT)) {
      if (!entry.startsWith('.')) await symlink(join(ROOT, entry), join(folder, entry));
    }
    for (const { text } of blocks.filter(({ language }) => language === 'js')) {
      await writeFile(join(folder, /^\/\/ ([\w-]+\.mjs)\n/.exec(text)![1]!), text);
    }
    const [first, ...commands] = blocks.filter(({ language }) => language === 'sh').map(({ text }) => text);
    expect(first).toBe(`npm ci\n${start}\n`);
    return { folder, steps: await shell(commands, { cwd: folder, env: server.env }), [Symbol.asyncDispose]: remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

const END_OF_STEP = '--- end of step ---';

async function shell(
  commands: readonly string[],
  { cwd, env }: { cwd: string; env: Record<string, string> },
): Promise<string[]> {
  const script = commands.map((text) => `${text}\necho '${END_OF_STEP}'\n`).join('');
  const { PATH, ...inherited } = inheritedEnvironment();
  const { stdout } = await promisify(execFile)('bash', ['--norc', '-euo', 'pipefail', '-c', script], {
    cwd,
    env: { ...inherited, PATH: [dirname(process.execPath), PATH].join(delimiter), ...env },
    timeout: 60_000,
  });
  return stdout.split(`${END_OF_STEP}\n`).slice(0, -1);
}
