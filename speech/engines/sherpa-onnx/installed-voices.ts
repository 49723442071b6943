import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { foldersIn, readOnnxFile, reasonOf, strayFilesIn } from './installed-models.ts';
import { MANIFEST_NAME } from './model-manifest.ts';
import { describeSynthesisFolder, type SynthesisModel } from './synthesis-folder.ts';
import { parseSynthesisManifest, type SynthesisManifest } from './synthesis-manifest.ts';

export interface InstalledSynthesisModel {
  folder: string;
  model: SynthesisModel;
}

export interface InstalledSynthesisModels {
  /** By name. */
  models: InstalledSynthesisModel[];
  /** Folders without a valid model, and why. */
  problems: { folder: string; problem: string }[];
}

/** Scans `tts/` of the models folder, which has a folder per model. Loads none. */
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
    // Follows links, because large models may be stored elsewhere.
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
/** If one is missing, eSpeak NG exits its process. */
const ESPEAK_FILES = ['phontab', 'phonindex', 'phondata', 'intonations'];

async function hasAll(folder: string, names: readonly string[]): Promise<boolean> {
  const found = await Promise.all(names.map((name) => stat(join(folder, name)).catch(() => null)));
  return found.every((entry) => entry?.isFile());
}
