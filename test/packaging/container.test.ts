import { existsSync, readdirSync, statSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadConfig } from '../../config.ts';
import { ROOT } from '../root.ts';
import { packageJson, settingNames, textOf, topLevelFolders } from './repository.ts';

interface Instruction {
  name: string;
  value: string;
}

const instructions = parseDockerfile(textOf('Dockerfile'));
const finalStage = instructions.slice(instructions.findLastIndex(({ name }) => name === 'FROM'));
const valuesOf = (name: string, among = finalStage) =>
  among.filter((each) => each.name === name).map((each) => each.value);
const environment = Object.fromEntries(
  valuesOf('ENV').flatMap((value) => value.split(/\s+/).map((pair) => pair.split('=', 2) as [string, string])),
);

describe('container image', () => {
  it('pins each build stage to an exact Node release', () => {
    const bases = valuesOf('FROM', instructions);
    expect(bases.length).toBeGreaterThanOrEqual(2);
    for (const base of bases)
      expect(base).toMatch(/^node:\d+\.\d+\.\d+-bookworm-slim(@sha256:[0-9a-f]{64})?( AS \w+)?$/);
  });

  it('runs the Node release of the checkout', () => {
    for (const base of valuesOf('FROM', instructions)) {
      expect(base.slice('node:'.length)).toMatch(new RegExp(`^${packageJson().dependencies.node}-`));
    }
  });

  it('runs as a user other than root', () => {
    const user = valuesOf('USER').at(-1) ?? '';
    expect(user).toMatch(/^[1-9]\d*:[1-9]\d*$/);
    expect(finalStage.findLastIndex(({ name }) => name === 'USER')).toBeGreaterThan(
      finalStage.findLastIndex(({ name }) => name === 'RUN'),
    );
  });

  it('starts Node directly, so that it receives signals', () => {
    expect(JSON.parse(valuesOf('CMD').join())).toEqual(['node', 'main.ts']);
    expect(valuesOf('ENTRYPOINT')).toEqual([]);
    expect(valuesOf('STOPSIGNAL')).toEqual(['SIGTERM']);
  });

  it('installs locked dependencies only, with development ones only for building the console', () => {
    const stages = Object.entries(stagesOf(instructions)).map(
      ([stage, among]) => [stage, valuesOf('RUN', among).filter((command) => command.includes('npm ci'))] as const,
    );
    expect(Object.fromEntries(stages)).toEqual({
      dependencies: [expect.stringContaining('npm ci --omit=dev')],
      console: [expect.stringMatching(/^npm ci --ignore-scripts .*node console\/build\.ts$/)],
      final: [],
    });
    const copies = valuesOf('COPY').filter((value) => value.startsWith('--from='));
    expect(copies.map((value) => value.split(' ')[1])).toEqual(['/app/node_modules', '/app/console/dist']);
  });

  it('copies the modules that run after npm ci before it', () => {
    const stage = stagesOf(instructions).dependencies ?? [];
    const before = stage.slice(
      0,
      stage.findIndex(({ value }) => value.startsWith('npm ci')),
    );
    const copied = valuesOf('COPY', before).flatMap((value) => value.split(' ').slice(0, -1));
    // Without development packages, the console is not built.
    const run = filesReadBy('bin/install/postinstall.ts').filter((file) => !file.startsWith('console/'));
    expect(run).toContain('bin/install/unused-files.ts');
    expect(run.filter((file) => !copied.some((path) => file.startsWith(`${path}/`)))).toEqual([]);
  });

  it('checks /healthz of its own HTTP server, without curl', () => {
    const [check = ''] = valuesOf('HEALTHCHECK');
    const command = JSON.parse(check.slice(check.indexOf('['))) as string[];
    expect(command.slice(0, 2)).toEqual(['node', '-e']);
    expect(command[2]).toContain('/healthz');
    expect(() => new Function(command[2] ?? '')).not.toThrow();
  });

  it('keeps its data in a volume that its user may write to', () => {
    expect(valuesOf('VOLUME')).toEqual([environment.TANDEM_DATA_DIR]);
    expect(valuesOf('RUN').join('\n')).toContain(`install -d -o node -g node -m 0700 ${environment.TANDEM_DATA_DIR}`);
  });

  it('listens on all interfaces, with valid settings', () => {
    const { NODE_ENV, ...settings } = environment;
    expect(NODE_ENV).toBe('production');
    expect(Object.keys(settings).filter((name) => !settingNames().includes(name))).toEqual([]);
    expect(loadConfig(settings, [], '/nonexistent/.env')).toMatchObject({ host: '0.0.0.0', dataDir: '/data' });
  });

  it('exposes HTTP, SIP over UDP and TCP, and the configured RTP and WebRTC ports', () => {
    const { PORT, RTP_PORT_MIN, RTP_PORT_MAX, WEBRTC_PORT } = environment;
    expect(valuesOf('EXPOSE').flatMap((value) => value.split(' '))).toEqual([
      `${PORT}/tcp`,
      '5060/udp',
      '5060/tcp',
      `${RTP_PORT_MIN}-${RTP_PORT_MAX}/udp`,
      `${WEBRTC_PORT}/udp`,
    ]);
  });
});

describe('build context', () => {
  const isLetIn = dockerignore(textOf('.dockerignore'));
  const needed = filesReadBy('main.ts');

  it('contains every file that main.ts reads, directly or indirectly', () => {
    expect(needed.length).toBeGreaterThan(80);
    expect(needed.filter((file) => !isLetIn(file))).toEqual([]);
  });

  it('contains the files for npm ci', () => {
    const files = ['package.json', 'package-lock.json', ...filesReadBy('bin/install/postinstall.ts')];
    expect(files.filter((file) => !isLetIn(file))).toEqual([]);
  });

  it('excludes secrets, history and development files', () => {
    const unwanted = [
      '.env',
      '.env.local',
      '.git/config',
      '.data/secret-key',
      '.npmrc',
      'sip/.env',
      'node_modules/pg/x.js',
    ];
    expect(
      [...unwanted, 'bin/demo/demo.ts', 'test/config.test.ts', 'sip/README.md', 'tsconfig.json'].filter(isLetIn),
    ).toEqual([]);
  });

  it('includes or excludes each top-level folder', () => {
    const forDevelopment = ['bench', 'bin', 'docs', 'ops', 'test'];
    const runtime = topLevelFolders().filter((folder) => !forDevelopment.includes(folder));
    expect(runtime.length).toBeGreaterThanOrEqual(6);
    expect(runtime.filter((folder) => !isLetIn(`${folder}/any.ts`))).toEqual([]);
    expect(forDevelopment.filter((folder) => isLetIn(`${folder}/any.ts`))).toEqual([]);
  });
});

function parseDockerfile(text: string): Instruction[] {
  const lines = text
    .replace(/^\s*#.*\n/gm, '')
    .replace(/\\\n\s*/g, ' ')
    .split('\n');
  return lines
    .filter((line) => line.trim() !== '')
    .map((line) => ({ name: line.split(' ', 1)[0] ?? '', value: line.slice(line.indexOf(' ') + 1).trim() }));
}

/** The instructions of each stage by name. The last stage is `final`. */
function stagesOf(all: Instruction[]): Record<string, Instruction[]> {
  const stages: Record<string, Instruction[]> = {};
  let current: Instruction[] = [];
  for (const instruction of all) {
    if (instruction.name === 'FROM') {
      current = [];
      stages[/ AS (\w+)$/.exec(instruction.value)?.[1] ?? 'final'] = current;
    }
    current.push(instruction);
  }
  return stages;
}

/** Whether a path is part of the context: the last pattern that matches it or a parent folder decides. */
function dockerignore(text: string): (path: string) => boolean {
  const rules = text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map((line) => ({ letsIn: line.startsWith('!'), pattern: patternOf(line.replace(/^!/, '')) }));
  return (path) => rules.findLast(({ pattern }) => pattern.test(path))?.letsIn ?? true;
}

function patternOf(glob: string): RegExp {
  const source = glob
    .replace(/[.+^$()|[\]{}]/g, '\\$&')
    .replace(/\*\*\//g, '\u0000')
    .replace(/\*/g, '[^/]*')
    .replace(/\?/g, '[^/]')
    .replaceAll('\u0000', '(.*/)?');
  return new RegExp(`^${source}(/.*)?$`);
}

/** The module, its imports, and files and folders named by URL, recursively. */
function filesReadBy(entry: string): string[] {
  const found = new Set<string>();
  const queue = [join(ROOT, entry)];
  for (let path = queue.pop(); path !== undefined; path = queue.pop()) {
    if (!existsSync(path)) continue;
    if (statSync(path).isDirectory()) {
      queue.push(...readdirSync(path).map((name) => join(path as string, name)));
      continue;
    }
    const file = relative(ROOT, path);
    if (found.has(file)) continue;
    found.add(file);
    if (!file.endsWith('.ts')) continue;
    const pattern = /(?:\bfrom|\bimport|new URL\(|import\()\s*'(\.[^']*)'/g;
    for (const [, target = ''] of textOf(file).matchAll(pattern)) queue.push(resolve(dirname(path), target));
  }
  return [...found];
}
