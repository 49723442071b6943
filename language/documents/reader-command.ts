import { realpath } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { READING_LIMITS } from './reading-limits.ts';

/**
 * Returns the command that reads the document at this path. Its process may read that file and its own code, and
 * nothing else.
 */
export async function readerCommand(path: string): Promise<string[]> {
  const readable = [...READABLE.map((name) => join(ROOT, name)), path];
  const real = await Promise.all(readable.map((one) => realpath(one)));
  return [
    process.execPath,
    '--permission',
    ...[...new Set([...readable, ...real])].map((one) => `--allow-fs-read=${one}`),
    // tesseract needs worker threads.
    '--disable-warning=PERM0006',
    '--allow-worker',
    // With the handler, WebAssembly reserves 10 GB of address space per memory.
    '--disable-wasm-trap-handler',
    '--disallow-code-generation-from-strings',
    `--max-old-space-size=${READING_LIMITS.heapBytes / 2 ** 20}`,
    `--import=${pathToFileURL(join(HERE, 'closed-doors.ts'))}`,
    join(HERE, 'reading-process.ts'),
  ];
}

const HERE = fileURLToPath(new URL('.', import.meta.url));
const ROOT = resolve(HERE, '../..');
/** Everything the process may read besides the document. */
const READABLE = ['package.json', 'language/documents', 'machines', 'node_modules'];
