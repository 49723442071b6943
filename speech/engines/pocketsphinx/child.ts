import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { serveRecognizer } from '../../engine-process/served-recognizer.ts';
import type { Keyword } from '../../recognizer.ts';
import { type Boost, boostOf } from './boost.ts';
import type { Decoder } from './decoder.ts';
import type { Band } from './front-end.ts';
import { createNativeDecoder, type NativeInstallation } from './native-decoder.ts';
import { PocketsphinxRecognizer } from './recognizer.ts';
import { repairedWasm } from './repaired-wasm.ts';
import { readTelephoneModel } from './telephone-model.ts';
import { createWasmDecoder, PACKAGED_DICTIONARY, PACKAGED_WASM } from './wasm-decoder.ts';

/** Entry of a child process that recognises with PocketSphinx. */

export type PocketsphinxArgument =
  | { kind: 'wasm'; model: string; cacheDir: string }
  | { kind: 'native'; model: string; installation: NativeInstallation };

serveRecognizer(async (argument) => {
  const options = argument as PocketsphinxArgument;
  const createDecoder = options.kind === 'wasm' ? await wasmDecoders(options) : await nativeDecoders(options);
  return PocketsphinxRecognizer.create({ model: options.model, createDecoder });
});

type CreateDecoder = (band: Band, keywords: readonly Keyword[]) => Promise<Decoder>;

async function wasmDecoders({ cacheDir }: { cacheDir: string }): Promise<CreateDecoder> {
  const wasm = await repairedWasm(PACKAGED_WASM, cacheDir);
  return async (band, keywords) => {
    const boost = boostOf(keywords, await dictionaryOf(PACKAGED_DICTIONARY, keywords));
    return createWasmDecoder({ wasm, band, boost });
  };
}

async function nativeDecoders({ installation }: { installation: NativeInstallation }): Promise<CreateDecoder> {
  const { acousticModel, dictionary } = installation.files;
  return async (band, keywords) => {
    const boost = boostOf(keywords, await dictionaryOf(dictionary, keywords));
    const folder = await mkdtemp(join(tmpdir(), 'tandem-pocketsphinx-'));
    try {
      return createNativeDecoder({
        installation,
        band,
        acousticModel: band === 'wideband' ? acousticModel : await telephoneModelIn(folder, acousticModel),
        dictionary: boost === null ? dictionary : await dictionaryIn(folder, dictionary, boost),
        keywordModel: boost === null ? null : await keywordModelIn(folder, boost),
      });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  };
}

/** Links the files shared by both bands and adds the converted ones. */
async function telephoneModelIn(folder: string, wideband: string): Promise<string> {
  const converted = await readTelephoneModel(wideband);
  for (const name of await readdir(wideband)) {
    if (converted[name] === undefined) await symlink(join(wideband, name), join(folder, name));
    else await writeFile(join(folder, name), converted[name]);
  }
  return folder;
}

async function dictionaryIn(folder: string, dictionary: string, boost: Boost): Promise<string> {
  const file = join(folder, 'words.dict');
  await writeFile(file, Buffer.concat([await readFile(dictionary), Buffer.from(boost.dictionary)]));
  return file;
}

async function keywordModelIn(folder: string, boost: Boost): Promise<string> {
  const file = join(folder, 'keywords.lm');
  await writeFile(file, boost.languageModel);
  return file;
}

/** Returns a dictionary look-up. Skips reading the file without keywords, because nothing is looked up. */
async function dictionaryOf(file: string, keywords: readonly Keyword[]): Promise<(word: string) => boolean> {
  if (keywords.length === 0) return () => false;
  const lines = `\n${await readFile(file, 'latin1')}`;
  return (word) => lines.includes(`\n${word} `);
}
