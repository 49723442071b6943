import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { packageJson, ROOT, textOf, topLevelFolders } from './repository.ts';

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

  it('has the scripts that people and CI call', () => {
    expect(manifest.scripts).toMatchObject({
      start: expect.any(String),
      demo: expect.any(String),
      test: expect.any(String),
      check: expect.any(String),
      bench: expect.any(String),
    });
  });

  it('has no script that runs a file which is not there', () => {
    const files = Object.values(manifest.scripts).flatMap((script) => script.match(/[\w./-]+\.ts\b/g) ?? []);
    expect(files).toContain('main.ts');
    expect(files.filter((file) => !existsSync(join(ROOT, file)))).toEqual([]);
  });

  it('says of every dependency with an install script whether it may run', () => {
    const scripted = Object.entries(locked).filter(([path, { hasInstallScript }]) => hasInstallScript && path !== '');
    const names = scripted.map(([path]) => path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length));
    expect(names).toContain('node');
    expect(names.filter((name) => manifest.allowScripts?.[name] === undefined)).toEqual([]);
    expect(manifest.allowScripts).toMatchObject({ node: true });
  });
});

describe('the lockfile', () => {
  it('names no registry, so that it serves every mirror', () => {
    expect(Object.values(locked).filter(({ resolved }) => resolved !== undefined)).toEqual([]);
    expect(lockText).not.toMatch(/"https?:\/\/[^"]*\.tgz"/);
  });

  it('locks what package.json declares', () => {
    for (const [name, version] of Object.entries(declared)) {
      expect(locked[`node_modules/${name}`]?.version, name).toBe(version);
    }
  });

  it('names no Node release for mediasoup: npm on an older Node would leave it out, and Node 24 runs it', () => {
    expect(locked['node_modules/mediasoup']?.optional).toBe(true);
    for (const name of ['mediasoup', 'h264-profile-level-id', 'supports-color']) {
      expect(locked[`node_modules/${name}`]).toMatchObject({ version: expect.any(String) });
      expect(locked[`node_modules/${name}`]?.engines, name).toBeUndefined();
    }
  });

  it('has an entry for every dependency, also of other platforms: npm 11 refuses it otherwise', () => {
    const missing = Object.entries(locked).flatMap(([path, { dependencies, optionalDependencies }]) =>
      Object.keys({ ...dependencies, ...optionalDependencies })
        .filter((name) => !isLockedFor(path, name))
        .map((name) => `${path} needs ${name}`),
    );
    expect(missing).toEqual([]);
  });
});

describe('the repository', () => {
  it('has a README of a few lines in every top-level folder', () => {
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

  it('links to nothing that is not there', () => {
    const guides = readdirSync(join(ROOT, 'docs')).map((file) => `docs/${file}`);
    const readmes = topLevelFolders().map((folder) => `${folder}/README.md`);
    const documents = [...new Set(['README.md', 'CONTRIBUTING.md', ...guides, ...readmes])];
    const broken = documents.flatMap((document) =>
      [...textOf(document).matchAll(/\]\((?!https?:)([^)#]+)(?:#[^)]*)?\)/g)]
        .map(([, target = '']) => target)
        .filter((target) => !existsSync(join(ROOT, document, '..', target)))
        .map((target) => `${document} links to ${target}`),
    );
    expect(broken).toEqual([]);
  });
});

/** Looks where Node would: beside the dependent, then in every `node_modules` above it. */
function isLockedFor(path: string, name: string): boolean {
  for (let at = path; ; at = at.slice(0, Math.max(0, at.lastIndexOf('/node_modules/')))) {
    if (`${at === '' ? '' : `${at}/`}node_modules/${name}` in locked) return true;
    if (at === '') return false;
  }
}
