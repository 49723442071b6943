import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { serveRecognizer } from '../../engine-process/served-recognizer.ts';
import type { Keyword } from '../../recognizer.ts';
import { type Boost, boostOf } from './boost.ts';
import type { Decoder } from './decoder.ts';
import { createNativeDecoder, type NativeInstallation } from './native-decoder.ts';
import { PocketsphinxRecognizer } from './recognizer.ts';
import { repairedWasm } from './repaired-wasm.ts';
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

type CreateDecoder = (keywords: readonly Keyword[]) => Promise<Decoder>;

async function wasmDecoders({ cacheDir }: { cacheDir: string }): Promise<CreateDecoder> {
  const wasm = await repairedWasm(PACKAGED_WASM, cacheDir);
  return async (keywords) => {
    const boost = boostOf(keywords, await dictionaryOf(PACKAGED_DICTIONARY, keywords));
    return createWasmDecoder({ wasm, boost });
  };
}

async function nativeDecoders({ installation }: { installation: NativeInstallation }): Promise<CreateDecoder> {
  const { dictionary } = installation.files;
  return async (keywords) => {
    const boost = boostOf(keywords, await dictionaryOf(dictionary, keywords));
    if (boost === null) return createNativeDecoder({ installation, boost: null });
    return withBoostFiles(boost, dictionary, (files) => createNativeDecoder({ installation, boost: files }));
  };
}

/** The native decoder reads files, once, when it is made. */
async function withBoostFiles(
  boost: Boost,
  dictionary: string,
  use: (files: { dictionary: string; languageModel: string }) => Decoder,
): Promise<Decoder> {
  const folder = await mkdtemp(join(tmpdir(), 'tandem-keywords-'));
  try {
    const files = { dictionary: join(folder, 'words.dict'), languageModel: join(folder, 'keywords.lm') };
    await writeFile(files.dictionary, Buffer.concat([await readFile(dictionary), Buffer.from(boost.dictionary)]));
    await writeFile(files.languageModel, boost.languageModel);
    return use(files);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Whether a word is in a dictionary; without keywords nobody asks. */
async function dictionaryOf(file: string, keywords: readonly Keyword[]): Promise<(word: string) => boolean> {
  if (keywords.length === 0) return () => false;
  const lines = `\n${await readFile(file, 'latin1')}`;
  return (word) => lines.includes(`\n${word} `);
}
