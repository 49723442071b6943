import { realpath } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { READING_LIMITS } from './reading-limits.ts';

/** How the program is started that reads the document of this path: it may read that and itself, and do nothing else. */
export async function readerCommand(path: string): Promise<string[]> {
  const readable = [...READABLE.map((name) => join(ROOT, name)), path];
  const real = await Promise.all(readable.map((one) => realpath(one)));
  return [
    process.execPath,
    '--permission',
    ...[...new Set([...readable, ...real])].map((one) => `--allow-fs-read=${one}`),
    // For tesseract.
    '--disable-warning=PERM0006',
    '--allow-worker',
    // With the handler WebAssembly takes 10 GB of addresses for each of its memories.
    '--disable-wasm-trap-handler',
    '--disallow-code-generation-from-strings',
    `--max-old-space-size=${READING_LIMITS.heapBytes / 2 ** 20}`,
    `--import=${pathToFileURL(join(HERE, 'closed-doors.ts'))}`,
    join(HERE, 'reading-process.ts'),
  ];
}

const HERE = fileURLToPath(new URL('.', import.meta.url));
const ROOT = resolve(HERE, '../..');
/** All that it may read beside the document. */
const READABLE = ['package.json', 'language/documents', 'machines', 'node_modules'];
