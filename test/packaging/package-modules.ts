import { globSync } from 'node:fs';
import { join, relative } from 'node:path';
import { rolldown } from 'rolldown';
import { ROOT } from '../root.ts';

const PLATFORM = [
  'main.ts',
  'bin/**/*.ts',
  '{actors,diagnosis,http,language,media,runtime,sip,speech,storage}/**/*.ts',
];
/** The bundler does not find packages that our modules require under another name, and the entries of threads. */
const REQUIRED = ['gpt-tokenizer/encoding/o200k_base', 'koffi', 'tesseract.js/src/worker-script/node/index.js'];
const ENTRY = 'platform';
const REQUIRING = 'platform/required.cjs';

/**
 * Paths below `node_modules` of all modules that the platform and its command line can load, also those that only some
 * settings or processors need.
 */
export async function loadablePackageModules(): Promise<Set<string>> {
  const ours = globSync(PLATFORM, { cwd: ROOT, exclude: ['**/*.d.ts', 'bin/install/**'] });
  const virtual: Record<string, string> = {
    [ENTRY]: [...ours.map((file) => join(ROOT, file)), REQUIRING].map((id) => `import '${id}';`).join('\n'),
    [REQUIRING]: REQUIRED.map((name) => `require('${name}');`).join('\n'),
  };
  const modules = join(ROOT, 'node_modules');
  const found = new Set<string>();
  const bundle = await rolldown({
    input: ENTRY,
    cwd: ROOT,
    platform: 'node',
    // Resolves packages as Node does. By default, a bundler prefers the ES modules of some.
    resolve: { mainFields: ['main'], conditionNames: ['node'] },
    external: /\.node$/,
    treeshake: false,
    logLevel: 'silent',
    plugins: [
      {
        name: 'modules',
        resolveId: (id) => (id in virtual ? id : null),
        load: (id) => virtual[id] ?? null,
        moduleParsed: ({ id }) => {
          if (id.startsWith(modules)) found.add(relative(modules, id.replace(/\?.*/, '')));
        },
      },
    ],
  });
  await bundle.generate();
  await bundle.close();
  return found;
}
