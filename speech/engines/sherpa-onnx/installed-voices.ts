import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { foldersIn, readOnnxFile, reasonOf, strayFilesIn } from './installed-models.ts';
import { MANIFEST_NAME } from './model-manifest.ts';
import { describeSynthesisFolder, type SynthesisModel } from './synthesis-folder.ts';
import { parseSynthesisManifest, type SynthesisManifest } from './synthesis-manifest.ts';

/** A synthesis model and where its files are. */
export interface InstalledSynthesisModel {
  folder: string;
  model: SynthesisModel;
}

export interface InstalledSynthesisModels {
  /** By name. */
  models: InstalledSynthesisModel[];
  /** Folders that are no model, and why. */
  problems: { folder: string; problem: string }[];
}

/** What lies in `tts/` of the folder of models, a folder for each. Loads none. */
export async function findSynthesisModels(modelsDir: string): Promise<InstalledSynthesisModels> {
  const found: InstalledSynthesisModels = { models: [], problems: [] };
  for (const folder of await foldersIn(join(modelsDir, 'tts'))) {
    const read = await readSynthesisFolder(folder);
    if ('problem' in read) found.problems.push({ folder, problem: read.problem });
    else found.models.push(read);
  }
  found.problems.push(...(await strayFilesIn(join(modelsDir, 'tts'))));
  return found;
}

async function readSynthesisFolder(folder: string): Promise<InstalledSynthesisModel | { problem: string }> {
  const entries = await readdir(folder).catch((error: unknown) => ({
    problem: `cannot be read: ${reasonOf(error)}`,
  }));
  if ('problem' in entries) return entries;
  const files = new Map<string, number>();
  for (const name of entries) {
    // Links are followed: models are large, and may lie elsewhere.
    const found = await stat(join(folder, name)).catch(() => null);
    if (found?.isFile()) files.set(name, found.size);
  }
  let manifest: SynthesisManifest | null = null;
  if (files.has(MANIFEST_NAME)) {
    const parsed = parseSynthesisManifest(await readFile(join(folder, MANIFEST_NAME), 'utf8'));
    if ('problem' in parsed) return parsed;
    manifest = parsed.manifest;
  }
  const metadata = new Map<string, Record<string, string>>();
  for (const file of files.keys()) {
    if (!file.endsWith('.onnx')) continue;
    const described = await readOnnxFile(folder, file);
    if ('problem' in described) return described;
    metadata.set(file, described.metadata);
  }
  const name = folder.slice(folder.lastIndexOf('/') + 1);
  const hasEspeakData = await hasAll(join(folder, ESPEAK_DATA), ESPEAK_FILES);
  const metadataOf = (file: string) => metadata.get(file) ?? {};
  const model = describeSynthesisFolder({ name, files, hasEspeakData, manifest, metadataOf });
  return 'problem' in model ? model : { folder, model };
}

export const ESPEAK_DATA = 'espeak-ng-data';
/** Without one of them eSpeak NG ends its process. */
const ESPEAK_FILES = ['phontab', 'phonindex', 'phondata', 'intonations'];

async function hasAll(folder: string, names: readonly string[]): Promise<boolean> {
  const found = await Promise.all(names.map((name) => stat(join(folder, name)).catch(() => null)));
  return found.every((entry) => entry?.isFile());
}
