import { execSync } from 'node:child_process';
import { existsSync, globSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ROOT } from '../root.ts';
import { packageJson, textOf, topLevelFolders } from './repository.ts';

interface LockedPackage {
  version?: string;
  engines?: { node?: string };
  optional?: boolean;
  resolved?: string;
  link?: boolean;
  hasInstallScript?: boolean;
  dependencies?: Record<string, string>;
  optionalDependencies?: Record<string, string>;
  devDependencies?: Record<string, string>;
}

const manifest = packageJson();
const declared = { ...manifest.dependencies, ...manifest.devDependencies, ...manifest.optionalDependencies };
const lockText = textOf('package-lock.json');
const locked = (JSON.parse(lockText) as { packages: Record<string, LockedPackage> }).packages;

describe('package.json', () => {
  it('pins every dependency to one version', () => {
    expect(Object.keys(declared).length).toBeGreaterThan(20);
    const ranges = Object.entries(declared).filter(([, version]) => !/^\d+\.\d+\.\d+(-[\w.]+)?$/.test(version));
    expect(ranges).toEqual([]);
  });

  it('contains the scripts that contributors and CI call', () => {
    expect(manifest.scripts).toMatchObject({
      start: expect.any(String),
      demo: expect.any(String),
      test: expect.any(String),
      check: expect.any(String),
      bench: expect.any(String),
    });
  });

  it('names only existing files in scripts', () => {
    const files = Object.values(manifest.scripts).flatMap((script) => script.match(/[\w./-]+\.ts\b/g) ?? []);
    expect(files).toContain('main.ts');
    expect(files.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
  });

  it('keeps compiled code beside the dependencies, for the server and the command line', () => {
    const { NODE_COMPILE_CACHE: _, ...inherited } = process.env;
    const env = { ...inherited, NODE_DEBUG_NATIVE: 'COMPILE_CACHE' };
    for (const command of ['npm start -- --help', 'bin/tandem --help']) {
      const logged = execSync(`${command} 2>&1 | grep 'resolved path'`, { cwd: ROOT, env, encoding: 'utf8' });
      expect(logged, command).toContain(`resolved path ${join(ROOT, 'node_modules/.cache/tandem')} `);
    }
  });

  it('installs even if the script after installing fails', () => {
    expect(manifest.scripts.postinstall).toBe('node bin/install/postinstall.ts; exit 0');
  });

  it('decides for every install script whether it may run', () => {
    const scripted = Object.entries(locked).filter(([path, { hasInstallScript }]) => hasInstallScript && path !== '');
    const names = scripted.map(([path]) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length));
    expect(names).toContain('node');
    expect(names.filter((name) => manifest.allowScripts?.[name] === undefined)).toEqual([]);
    expect(manifest.allowScripts).toMatchObject({ node: true });
  });
});

describe('package-lock.json', () => {
  it('names no registry, so that every mirror works', () => {
    const packages = Object.values(locked).filter(({ link }) => !link);
    expect(packages.filter(({ resolved }) => resolved !== undefined)).toEqual([]);
    expect(lockText).not.toMatch(/"https?:\/\/[^"]*\.tgz"/);
  });

  it('locks the versions of package.json', () => {
    for (const [name, version] of Object.entries(declared)) {
      const entry = locked[`node_modules/${name}`];
      const target = entry?.link ? locked[entry.resolved ?? ''] : entry;
      expect(target?.version, name).toBe(version);
    }
  });

  it("omits mediasoup's Node requirement, because npm on an older Node would skip it", () => {
    expect(locked['node_modules/mediasoup']?.optional).toBe(true);
    for (const name of ['mediasoup', 'h264-profile-level-id', 'supports-color']) {
      expect(locked[`node_modules/${name}`]).toMatchObject({ version: expect.any(String) });
      expect(locked[`node_modules/${name}`]?.engines, name).toBeUndefined();
    }
  });

  it('contains every dependency of every platform, which npm 11 requires', () => {
    const missing = Object.entries(locked).flatMap(([path, { dependencies, optionalDependencies }]) =>
      Object.keys({ ...dependencies, ...optionalDependencies })
        .filter((name) => !isLockedFor(path, name))
        .map((name) => `${path} needs ${name}`),
    );
    expect(missing).toEqual([]);
  });
});

describe('repository', () => {
  it('contains a short README in every top-level folder', () => {
    expect(topLevelFolders().length).toBeGreaterThanOrEqual(8);
    for (const folder of topLevelFolders()) {
      expect(existsSync(join(ROOT, folder, 'README.md')), `${folder}/README.md exists`).toBe(true);
      const lines = textOf(`${folder}/README.md`)
        .split('\n')
        .filter((line) => line.trim() !== '');
      expect(lines.length, `${folder}/README.md`).toBeGreaterThanOrEqual(4);
      expect(lines.length, `${folder}/README.md`).toBeLessThanOrEqual(12);
    }
  });

  it('names only existing files in the table of places to change', () => {
    const [table = ''] =
      /### Where do I change[\s\S]*?\n\n(?!\|)/.exec(textOf('CONTRIBUTING.md').replace('...\n\n', '\n')) ?? [];
    const places = [...table.matchAll(/`([\w./*-]+)`/g)].map(([, place]) => place!);
    expect(places.length).toBeGreaterThan(40);
    expect(places.filter((place) => globSync(place, { cwd: ROOT }).length === 0)).toEqual([]);
  });

  it('contains no broken links', () => {
    const broken = documents().flatMap((document) =>
      [...textOf(document).matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)].flatMap(([, target = '', heading]) => {
        const path = target === '' ? document : join(document, '..', target);
        const isThere = existsSync(join(ROOT, path)) && (heading === undefined || headingsOf(path).has(heading));
        return isThere ? [] : [`${document} links to ${target}${heading === undefined ? '' : `#${heading}`}`];
      }),
    );
    expect(broken).toEqual([]);
  });
});

function documents(): string[] {
  const guides = readdirSync(join(ROOT, 'docs')).map((file) => `docs/${file}`);
  const readmes = topLevelFolders().map((folder) => `${folder}/README.md`);
  return [...new Set(['README.md', 'CONTRIBUTING.md', ...guides, ...readmes])];
}

/** The anchors that GitHub gives the headings of a page. */
function headingsOf(path: string): Set<string> {
  const prose = textOf(path).replaceAll(/^```[\s\S]*?^```/gm, '');
  const headings = [...prose.matchAll(/^#+ (.*)$/gm)].map(([, heading]) => heading!.toLowerCase());
  return new Set(headings.map((heading) => heading.replaceAll(/[^\p{L}\p{N}_ -]/gu, '').replaceAll(' ', '-')));
}

/** Resolves like Node: beside the dependent, then in every `node_modules` above it. */
function isLockedFor(path: string, name: string): boolean {
  for (let at = path; ; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/')))) {
    if (`${at === '' ? '' : `${at}/`}node_modules/${name}` in locked) return true;
    if (at === '') return false;
  }
}
