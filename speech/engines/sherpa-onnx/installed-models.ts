import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describeModelFolder, type SherpaModel } from './model-folder.ts';
import { MANIFEST_NAME, type ModelManifest, parseManifest } from './model-manifest.ts';
import { OnnxFormatError, readOnnxMetadata } from './onnx-metadata.ts';
import type { PunctuationModel } from './punctuation.ts';

export interface InstalledModel {
  folder: string;
  model: SherpaModel;
}

/** The Whisper model for language identification. */
export interface LanguageModel {
  encoder: string;
  decoder: string;
}

export interface InstalledModels {
  /** By name. */
  recognition: InstalledModel[];
  punctuation: PunctuationModel[];
  languageIdentification: LanguageModel | null;
  /** Folders without a valid model, and why. */
  problems: { folder: string; problem: string }[];
}

/**
 * Scans the models folder: `stt/` has a folder per recognition model, `punctuation/` per punctuation model,
 * `language-id/` a multilingual Whisper. A missing folder has no models.
 */
export async function findInstalledModels(modelsDir: string): Promise<InstalledModels> {
  const found: InstalledModels = { recognition: [], punctuation: [], languageIdentification: null, problems: [] };
  for (const folder of await foldersIn(join(modelsDir, 'stt'))) {
    const read = await readModelFolder(folder);
    if ('problem' in read) found.problems.push({ folder, problem: read.problem });
    else found.recognition.push(read);
  }
  found.problems.push(...(await strayFilesIn(join(modelsDir, 'stt'))));
  for (const folder of await foldersIn(join(modelsDir, 'punctuation'))) {
    const read = await readPunctuationFolder(folder);
    if ('problem' in read) found.problems.push({ folder, problem: read.problem });
    else found.punctuation.push(read);
  }
  for (const folder of await foldersIn(join(modelsDir, 'language-id'))) {
    const read = await readModelFolder(folder);
    if ('problem' in read) found.problems.push({ folder, problem: read.problem });
    else if (read.model.type !== 'whisper' || read.model.languages.length < 2) {
      found.problems.push({ folder, problem: 'only a multilingual Whisper model distinguishes languages' });
    } else {
      const { encoder, decoder } = read.model.files;
      found.languageIdentification ??= { encoder: join(folder, encoder!), decoder: join(folder, decoder!) };
    }
  }
  return found;
}

/**
 * Reads the model of a folder, or why it is invalid. Finds damage to its ONNX files as far as possible without loading.
 */
export async function readModelFolder(folder: string): Promise<InstalledModel | { problem: string }> {
  const read = await readFolder(folder);
  if ('problem' in read) return read;
  const { files, manifest } = read;
  const metadata = new Map<string, Record<string, string>>();
  for (const file of files.filter((name) => name.endsWith('.onnx'))) {
    const described = await readOnnxFile(folder, file);
    if ('problem' in described) return described;
    metadata.set(file, described.metadata);
  }
  const name = folder.slice(folder.lastIndexOf('/') + 1);
  const model = describeModelFolder({ name, files, manifest, metadataOf: (file) => metadata.get(file) ?? {} });
  if ('problem' in model) return model;
  const { tokens } = model.files;
  const problem = tokens === undefined ? null : await tokensProblem(join(folder, tokens), [...metadata.values()]);
  return problem === null ? { folder, model } : { problem: `${tokens} ${problem}` };
}

/** Reads an ONNX file's metadata, or why it cannot be used. */
export async function readOnnxFile(
  folder: string,
  file: string,
): Promise<{ metadata: Record<string, string> } | { problem: string }> {
  try {
    return { metadata: await readOnnxMetadata(join(folder, file)) };
  } catch (error) {
    if (error instanceof OnnxFormatError) return { problem: `${file} is damaged: ${error.message}` };
    return { problem: `${file} cannot be read: ${reasonOf(error)}` };
  }
}

/** Without valid tokens a model recognises only silence, or crashes its process. */
async function tokensProblem(path: string, metadata: readonly Record<string, string>[]): Promise<string | null> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    return `cannot be read: ${reasonOf(error)}`;
  }
  const lines = text.split('\n').filter((line) => line.trim() !== '').length;
  const wanted = Math.max(1, ...metadata.map(({ vocab_size: size }) => Number(size) || 0));
  return lines < wanted ? `has ${lines} of ${wanted} tokens: fetch the model again` : null;
}

/** For people. Other errors are defects, and are rethrown. */
export function reasonOf(error: unknown): string {
  const reason = REASONS[(error as NodeJS.ErrnoException).code ?? ''];
  if (reason === undefined) throw error;
  return reason;
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'it is a link to something that does not exist',
  ENOTDIR: 'it is a link to a file; link the folder of the model',
  EISDIR: 'it is a folder',
  ELOOP: 'its links lead in a circle',
  EACCES: 'its permissions do not allow it',
};

async function readPunctuationFolder(folder: string): Promise<PunctuationModel | { problem: string }> {
  const read = await readFolder(folder);
  if ('problem' in read) return read;
  const { files, manifest } = read;
  const models = files.filter((name) => name.endsWith('.onnx'));
  const model = manifest?.files?.model ?? models.find((name) => name.includes('.int8.')) ?? models[0];
  if (model === undefined) return { problem: 'no model in it: expected model.onnx' };
  const vocabulary = files.find((name) => name === (manifest?.files?.bpeVocab ?? 'bpe.vocab'));
  return {
    model: join(folder, model),
    bpeVocab: vocabulary === undefined ? null : join(folder, vocabulary),
    languages: manifest?.languages ?? (vocabulary === undefined ? ['zh', 'en'] : ['en']),
  };
}

async function readFolder(
  folder: string,
): Promise<{ files: string[]; manifest: ModelManifest | null } | { problem: string }> {
  // Follows links, because large models may be stored elsewhere.
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => ({
    problem: `cannot be read: ${reasonOf(error)}`,
  }));
  if ('problem' in entries) return entries;
  const files = entries.filter((entry) => !entry.isDirectory()).map(({ name }) => name);
  if (!files.includes(MANIFEST_NAME)) return { files, manifest: null };
  const text = await readFile(join(folder, MANIFEST_NAME), 'utf8').catch((error: unknown) => ({
    problem: `${MANIFEST_NAME} cannot be read: ${reasonOf(error)}`,
  }));
  if (typeof text !== 'string') return text;
  const parsed = parseManifest(text);
  return 'problem' in parsed ? parsed : { files, manifest: parsed.manifest };
}

/** Finds model files beside the folders, as after a manual download; or why there are no folders. */
export async function strayFilesIn(parent: string): Promise<{ folder: string; problem: string }[]> {
  const entries = await readdir(parent, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) =>
    error.code === 'ENOENT' ? [] : { folder: parent, problem: `cannot be read: ${reasonOf(error)}` },
  );
  if ('problem' in entries) return [entries];
  const strays = entries.filter((entry) => entry.isFile() && !entry.name.startsWith('.'));
  return strays.flatMap(({ name }) => {
    const problem = ARCHIVE.test(name)
      ? 'it is an archive: unpack it here, or run tandem models fetch with its URL'
      : 'it is a file of a model: put all files of the model into a folder of their own here';
    return ARCHIVE.test(name) || MODEL_FILE.test(name) ? [{ folder: join(parent, name), problem }] : [];
  });
}

const ARCHIVE = /\.(?:tar\.bz2|tar\.gz|tgz|zip)$/;
const MODEL_FILE = /\.(?:onnx|ort)$/;

export async function foldersIn(parent: string): Promise<string[]> {
  const entries = await readdir(parent, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    // `strayFilesIn` reports it.
    reasonOf(error);
    return [];
  });
  const isFolder = (entry: (typeof entries)[number]) => entry.isDirectory() || entry.isSymbolicLink();
  // Unfinished downloads begin with a dot.
  const names = entries.filter((entry) => isFolder(entry) && !entry.name.startsWith('.')).map(({ name }) => name);
  return names.sort().map((name) => join(parent, name));
}
