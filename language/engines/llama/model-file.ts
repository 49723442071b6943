import { createHash } from 'node:crypto';
import { open } from 'node:fs/promises';
import { basename } from 'node:path';
import { LanguageEngineError } from '../../engine.ts';

export interface ModelFile {
  /** The name and a digest of the file's size and beginning, which holds the metadata: another file gets another id. */
  id: string;
  /** Unix time in seconds. */
  created: number;
}

const HEADER_BYTES = 1024 * 1024;
const MAGIC = 'GGUF';

/** Inspects a model file without loading it. @throws LanguageEngineError `unavailable` */
export async function readModelFile(path: string): Promise<ModelFile> {
  const { header, bytes, changedMs } = await readHeader(path);
  if (header.toString('latin1', 0, MAGIC.length) !== MAGIC) {
    throw new LanguageEngineError('unavailable', `LLM_MODEL_PATH: ${basename(path)} is not a GGUF model file`);
  }
  const digest = createHash('sha256').update(`${bytes}\n`).update(header).digest('hex').slice(0, 8);
  return { id: `${nameOf(path)}-${digest}`, created: Math.floor(changedMs / 1000) };
}

async function readHeader(path: string): Promise<{ header: Buffer; bytes: number; changedMs: number }> {
  try {
    const file = await open(path, 'r');
    try {
      const { size, mtimeMs } = await file.stat();
      const { buffer, bytesRead } = await file.read(Buffer.alloc(HEADER_BYTES), 0, HEADER_BYTES, 0);
      return { header: buffer.subarray(0, bytesRead), bytes: size, changedMs: mtimeMs };
    } finally {
      await file.close();
    }
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? String(error);
    throw new LanguageEngineError('unavailable', `LLM_MODEL_PATH: ${basename(path)} cannot be read (${reason})`, {
      cause: error,
    });
  }
}

/** Safe for JSON, URLs and command lines. */
function nameOf(path: string): string {
  return (
    basename(path)
      .replace(/\.gguf$/i, '')
      .replace(/[^\w.-]+/g, '-')
      .slice(0, 100) || 'model'
  );
}
