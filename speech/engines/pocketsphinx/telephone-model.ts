import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RecognizerError } from '../../recognizer.ts';
import { dot, featureParameters, TELEPHONE, TELEPHONE_OF_WIDEBAND, WIDEBAND } from './front-end.ts';

/**
 * The acoustic model for telephone speech. The installed model uses frequencies up to 6.8 kHz and expects the noise of
 * an s there, but a telephone transmits nothing above 3.4 kHz. The telephone model is computed from the installed one.
 * The mean of each Gaussian is converted from cepstra back to log energies of filters. Filters above the telephone band
 * are dropped, and the others become cepstra again. This conversion is linear, so one matrix converts the means, the
 * variances (by its squares) and the differences over time. All other parts of the model stay unchanged.
 */

/** Files of an acoustic model that depend on the band, by name. */
export interface AcousticModelFiles {
  'feat.params': Uint8Array;
  means: Uint8Array;
  variances: Uint8Array;
}

/** Converts the wideband model in `folder`. @throws RecognizerError `model`, as `telephoneModelOf` */
export async function readTelephoneModel(folder: string): Promise<Partial<Record<string, Uint8Array>>> {
  const [parameters, means, variances] = await Promise.all(
    ['feat.params', 'means', 'variances'].map((name) => readFile(join(folder, name))),
  );
  return { ...telephoneModelOf({ 'feat.params': parameters!, means: means!, variances: variances! }) };
}

/** @throws RecognizerError `model` if the files are damaged or of an unknown model */
export function telephoneModelOf(wideband: AcousticModelFiles): AcousticModelFiles {
  requireKnown(Buffer.from(wideband['feat.params']).toString('latin1'));
  const squares = TELEPHONE_OF_WIDEBAND.map((row) => row.map((weight) => weight * weight));
  const parameters = Object.entries(featureParameters(TELEPHONE)).map(([name, value]) => `${name} ${value}\n`);
  return {
    'feat.params': Buffer.from(parameters.join('')),
    means: writeDensities(converted(readDensities(wideband.means), TELEPHONE_OF_WIDEBAND)),
    variances: writeDensities(converted(readDensities(wideband.variances), squares)),
  };
}

/** One vector for each density of each stream of each codebook. */
interface Densities {
  codebooks: number;
  densities: number;
  vectorLength: number;
  values: Float32Array;
}

function converted({ vectorLength, values, ...counts }: Densities, matrix: readonly Float64Array[]): Densities {
  const vectors = values.length / vectorLength;
  const result = new Float32Array(vectors * matrix.length);
  for (let vector = 0; vector < vectors; vector++) {
    const source = values.subarray(vector * vectorLength, (vector + 1) * vectorLength);
    for (let row = 0; row < matrix.length; row++) result[vector * matrix.length + row] = dot(matrix[row]!, source);
  }
  return { ...counts, vectorLength: matrix.length, values: result };
}

/** PocketSphinx has defaults for parameters that `feat.params` omits. */
function requireKnown(text: string): void {
  const expected: Record<string, string> = featureParameters(WIDEBAND);
  const entries = text.split('\n').map((line) => line.trim().split(/\s+/));
  const found = new Map(entries.map(([name = '', value = '']) => [name, value]));
  found.delete('');
  const isKnown = [...found].every(([name, value]) => name === '-cmninit' || expected[name] === value);
  const isComplete = ['-upperf', '-nfilt', '-lifter', '-svspec'].every((name) => found.has(name));
  if (!isKnown || !isComplete) throw unknownModel('its features differ');
}

/** The Sphinx 3 format: a text header, then 32-bit words. The last word is a checksum of all but the first. */
const HEADER = 's3\nversion 1.0\nchksum0 yes\n';
const HEADER_END = 'endhdr\n';
const BYTE_ORDER = 0x11223344;
/** The cepstra, their first differences over time, and their second differences. */
const STREAMS = 3;
const COUNTS = 1 + 3 + STREAMS + 1;

function readDensities(file: Uint8Array): Densities {
  const start = Buffer.from(file.subarray(0, 256)).indexOf(HEADER_END) + HEADER_END.length;
  const body = new Uint8Array(file.subarray(start));
  if (start < HEADER_END.length || body.length % 4 !== 0) throw unknownModel('a file is not in the Sphinx 3 format');
  const words = new Uint32Array(body.buffer);
  const [order, codebooks = 0, streams, densities = 0] = words;
  const values = codebooks * densities * STREAMS * WIDEBAND.cepstra;
  const lengths = words.subarray(4, 4 + STREAMS);
  const isKnown = order === BYTE_ORDER && streams === STREAMS && lengths.every((each) => each === WIDEBAND.cepstra);
  if (!isKnown || words[COUNTS - 1] !== values || words.length !== COUNTS + values + 1) {
    throw unknownModel('a file has an unexpected size');
  }
  if (words.at(-1) !== checksumOf(words.subarray(1, -1))) throw unknownModel('a file is damaged');
  const vectors = new Float32Array(body.buffer, COUNTS * 4, values);
  return { codebooks, densities, vectorLength: WIDEBAND.cepstra, values: vectors };
}

function writeDensities({ codebooks, densities, vectorLength, values }: Densities): Uint8Array {
  const words = new Uint32Array(COUNTS + values.length + 1);
  words.set([BYTE_ORDER, codebooks, STREAMS, densities, ...new Array(STREAMS).fill(vectorLength), values.length]);
  words.set(new Uint32Array(values.buffer), COUNTS);
  words[words.length - 1] = checksumOf(words.subarray(1, -1));
  return Buffer.concat([Buffer.from(HEADER + HEADER_END), Buffer.from(words.buffer)]);
}

/** As `bio_fread` of sphinxbase computes it. */
function checksumOf(words: Uint32Array): number {
  let sum = 0;
  for (const word of words) sum = (((sum << 20) | (sum >>> 12)) + word) >>> 0;
  return sum;
}

function unknownModel(why: string): RecognizerError {
  return new RecognizerError('model', `the acoustic model of PocketSphinx is not the one that is known: ${why}`);
}
