import { readdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { exists } from '../../../runtime/exists.ts';
import { RecognizerError } from '../../recognizer.ts';
import { type DecodedSegment, type Decoder, decoderOptions } from './decoder.ts';
import { type Band, FRONT_ENDS } from './front-end.ts';

/**
 * The files that Debian's packages install. A type alias, because an interface is not assignable to JSON for the child
 * process.
 */
export type NativeInstallation = {
  /** Shared libraries of libpocketsphinx3 and libsphinxbase3. */
  pocketsphinx: string;
  sphinxbase: string;
  /** Files of pocketsphinx-en-us. */
  files: { acousticModel: string; dictionary: string; languageModel: string };
};

export const NATIVE_PACKAGES = 'libpocketsphinx3 and pocketsphinx-en-us';

const LIBRARY_FOLDERS = ['/usr/local/lib', '/usr/lib64', '/usr/lib'];
const MODEL_FOLDERS = ['/usr/local/share/pocketsphinx/model/en-us', '/usr/share/pocketsphinx/model/en-us'];

/** Null if a part is missing, including the optional `koffi`, which calls the library. */
export async function findNativeInstallation(): Promise<NativeInstallation | null> {
  const pocketsphinx = await findLibrary('libpocketsphinx.so.3');
  const sphinxbase = await findLibrary('libsphinxbase.so.3');
  if (pocketsphinx === null || sphinxbase === null || !isKoffiInstalled()) return null;
  for (const folder of MODEL_FOLDERS) {
    const files = {
      acousticModel: join(folder, 'en-us'),
      dictionary: join(folder, 'cmudict-en-us.dict'),
      languageModel: join(folder, 'en-us.lm.bin'),
    };
    const present = await Promise.all(Object.values(files).map((file) => exists(file)));
    if (present.every(Boolean)) return { pocketsphinx, sphinxbase, files };
  }
  return null;
}

export interface NativeDecoderOptions {
  installation: NativeInstallation;
  band: Band;
  /** A folder. The model must match `band`. */
  acousticModel: string;
  dictionary: string;
  /** A language model to search together with the installed one; null without. */
  keywordModel: string | null;
}

/**
 * Runs in this process, which a crash of the library ends. Reads the files once, here. @throws RecognizerError `model`
 */
export function createNativeDecoder(options: NativeDecoderOptions): Decoder {
  const { installation, band, acousticModel, dictionary, keywordModel } = options;
  const library = loadLibrary(installation);
  const { languageModel } = installation.files;
  const argv = decoderOptions(band, { acousticModel, dictionary });
  if (keywordModel === null) argv.push('-lm', languageModel);
  const config = library.parseOptions(null, library.optionDefinitions(), argv.length, argv, 0);
  const decoder = config === null ? null : library.createDecoder(config);
  if (decoder === null) throw new RecognizerError('model', 'PocketSphinx could not load its model');
  const native = new NativeDecoder(library, decoder, FRONT_ENDS[band].cepstra);
  if (keywordModel !== null) native.interpolate(config, [languageModel, keywordModel]);
  library.freeOptions(config);
  return native;
}

class NativeDecoder implements Decoder {
  readonly #library: Library;
  readonly #decoder: unknown;
  readonly #normalization: unknown;

  constructor(library: Library, decoder: unknown, cepstra: number) {
    this.#library = library;
    this.#decoder = decoder;
    const { cmn } = library.decode(library.features(decoder), library.FeatureStart) as { cmn: unknown };
    const { length } = library.decode(cmn, library.Normalization) as { length: number };
    if (length !== cepstra) throw new RecognizerError('model', 'this build of PocketSphinx is not one that is known');
    this.#normalization = cmn;
  }

  /** Searches both models together, each at its full weight, as the repaired WebAssembly does. */
  interpolate(config: unknown, files: readonly string[]): void {
    const library = this.#library;
    const logMath = library.logMath(this.#decoder);
    const models = files.map((file) => library.readModel(config, file, NGRAM_AUTO, logMath));
    if (models.some((model) => model === null)) throw new RecognizerError('model', 'a language model cannot be read');
    const weights = new Float32Array(models.length).fill(1);
    const set = library.joinModels(config, models, ['general', 'keywords'], weights, models.length);
    succeed(library.setModel(this.#decoder, 'boosted', set));
    succeed(library.setSearch(this.#decoder, 'boosted'));
    // The decoder holds references now.
    for (const model of [...models, set]) library.freeModel(model);
  }

  startUtterance(): void {
    // Otherwise times continue from the last utterance.
    succeed(this.#library.startStream(this.#decoder));
    succeed(this.#library.startUtterance(this.#decoder));
  }

  setCepstralMean(mean: Float32Array): void {
    this.#library.setMean(this.#normalization, mean);
  }

  process(samples: Int16Array<ArrayBuffer>): void {
    if (this.#library.process(this.#decoder, samples, samples.length, 0, 0) < 0) throw new Error('not decoded');
  }

  endUtterance(): void {
    succeed(this.#library.endUtterance(this.#decoder));
    // Searches for the best path through the lattice, to which the posteriors refer.
    this.#library.hypothesis(this.#decoder, null);
  }

  segments(): DecodedSegment[] {
    const segments: DecodedSegment[] = [];
    const [start, end] = [[0], [0]];
    let segment = this.#library.firstSegment(this.#decoder, null);
    while (segment !== null) {
      this.#library.segmentFrames(segment, start, end);
      segments.push({
        word: this.#library.segmentWord(segment),
        startFrame: start[0]!,
        endFrame: end[0]!,
        logPosterior: this.#library.segmentPosterior(segment, null, null, null),
      });
      segment = this.#library.nextSegment(segment);
    }
    return segments;
  }

  close(): void {
    this.#library.freeDecoder(this.#decoder);
  }
}

const NGRAM_AUTO = 0;

type Library = ReturnType<typeof loadLibrary>;

/** Functions of pocketsphinx.h, ngram_model.h and cmn.h, named by their use here. */
function loadLibrary({ pocketsphinx, sphinxbase }: NativeInstallation) {
  const koffi = requireKoffi();
  const recognition = koffi.load(pocketsphinx);
  const base = koffi.load(sphinxbase);
  const of = <Answer>(library: typeof base, declaration: string): ((...values: unknown[]) => Answer) =>
    library.func(declaration);
  return {
    decode: (pointer: unknown, type: ReturnType<typeof koffi.struct>): unknown => koffi.decode(pointer, type),
    /** feat_t up to its cmn_t. */
    FeatureStart: koffi.struct({
      refcount: 'int',
      name: 'void *',
      cepstra: 'int32',
      streams: 'int32',
      streamLengths: 'void *',
      window: 'int32',
      subvectors: 'int32',
      subvectorLengths: 'void *',
      subvectorIndexes: 'void *',
      subvectorBuffer: 'void *',
      subvectorSize: 'int32',
      normalization: 'int',
      varianceNormalization: 'int32',
      gain: 'int',
      compute: 'void *',
      cmn: 'void *',
    }),
    Normalization: koffi.struct({
      mean: 'void *',
      variance: 'void *',
      sum: 'void *',
      frames: 'int32',
      length: 'int32',
    }),
    optionDefinitions: of<unknown>(recognition, 'void *ps_args()'),
    parseOptions: of<unknown>(
      base,
      'void *cmd_ln_parse_r(void *inout, void *definitions, int32 argc, const char **argv, int32 strict)',
    ),
    freeOptions: of<number>(base, 'int cmd_ln_free_r(void *config)'),
    createDecoder: of<unknown>(recognition, 'void *ps_init(void *config)'),
    freeDecoder: of<number>(recognition, 'int ps_free(void *decoder)'),
    features: of<unknown>(recognition, 'void *ps_get_feat(void *decoder)'),
    logMath: of<unknown>(recognition, 'void *ps_get_logmath(void *decoder)'),
    setMean: of<void>(base, 'void cmn_live_set(void *cmn, const float *mean)'),
    readModel: of<unknown>(base, 'void *ngram_model_read(void *config, const char *file, int type, void *logmath)'),
    joinModels: of<unknown>(
      base,
      'void *ngram_model_set_init(void *config, void **models, const char **names, const float *weights, int32 count)',
    ),
    freeModel: of<number>(base, 'int ngram_model_free(void *model)'),
    setModel: of<number>(recognition, 'int ps_set_lm(void *decoder, const char *name, void *model)'),
    setSearch: of<number>(recognition, 'int ps_set_search(void *decoder, const char *name)'),
    startStream: of<number>(recognition, 'int ps_start_stream(void *decoder)'),
    startUtterance: of<number>(recognition, 'int ps_start_utt(void *decoder)'),
    process: of<number>(
      recognition,
      'int ps_process_raw(void *decoder, const int16_t *samples, size_t count, int noSearch, int isWhole)',
    ),
    endUtterance: of<number>(recognition, 'int ps_end_utt(void *decoder)'),
    hypothesis: of<unknown>(recognition, 'const char *ps_get_hyp(void *decoder, int32 *score)'),
    firstSegment: of<unknown>(recognition, 'void *ps_seg_iter(void *decoder, int32 *score)'),
    nextSegment: of<unknown>(recognition, 'void *ps_seg_next(void *segment)'),
    segmentWord: of<string>(recognition, 'const char *ps_seg_word(void *segment)'),
    segmentFrames: of<void>(recognition, 'void ps_seg_frames(void *segment, _Out_ int *start, _Out_ int *end)'),
    segmentPosterior: of<number>(
      recognition,
      'int32 ps_seg_prob(void *segment, int32 *acoustic, int32 *language, int32 *backOff)',
    ),
  };
}

function succeed(status: number): void {
  if (status !== 0) throw new Error(`PocketSphinx refused (${status})`);
}

function requireKoffi(): typeof import('koffi') {
  return createRequire(import.meta.url)('koffi');
}

function isKoffiInstalled(): boolean {
  try {
    createRequire(import.meta.url).resolve('koffi');
    return true;
  } catch {
    return false;
  }
}

/** Searches the usual folders and their subfolders per architecture. */
async function findLibrary(name: string): Promise<string | null> {
  for (const folder of LIBRARY_FOLDERS) {
    const below = await readdir(folder, { withFileTypes: true }).catch(() => []);
    const triplets = below.filter((entry) => entry.isDirectory() && entry.name.includes('-linux-'));
    for (const candidate of [folder, ...triplets.map((entry) => join(folder, entry.name))]) {
      if (await exists(join(candidate, name))) return join(candidate, name);
    }
  }
  return null;
}
