/**
 * How PocketSphinx computes features: mel-frequency cepstra of frames of 410 samples every 160, at 16 kHz. Filters are
 * triangles of unit area, evenly spaced in mel from 130 Hz; their log energies go through an orthonormal DCT and are
 * liftered (`-transform dct`, `-lifter 22`).
 */
export interface FrontEnd {
  filters: number;
  highestHz: number;
  /** Number of coefficients kept. */
  cepstra: number;
  /** The mean of the training speech (`-cmninit`). */
  assumedMean: readonly number[];
}

const LOWEST_HZ = 130;
const LIFTER = 22;

/** The installed `en-us` model, from its `feat.params`. */
export const WIDEBAND: FrontEnd = {
  filters: 25,
  highestHz: 6800,
  cepstra: 13,
  assumedMean: [41, -5.29, -0.12, 5.09, 2.48, -4.07, -1.37, -1.78, -5.08, -2.05, -6.45, -1.42, 1.17],
};

const TELEPHONE_FILTERS = 18;

/**
 * The lower filters of `WIDEBAND`, up to 3,447 Hz: a telephone transmits 300 to 3,400 Hz. For 18 filters, 10 coefficients
 * describe the spectrum as finely as 13 do for 25 filters.
 */
const TELEPHONE_SHAPE = {
  filters: TELEPHONE_FILTERS,
  highestHz: cornerHz(WIDEBAND, TELEPHONE_FILTERS + 1),
  cepstra: 10,
};

/** Converts cepstra of wideband speech to cepstra of the telephone band. One row for each of the latter. */
export const TELEPHONE_OF_WIDEBAND: readonly Float64Array[] = product(
  dctOf(TELEPHONE_SHAPE),
  inverseDctOf(WIDEBAND).slice(0, TELEPHONE_SHAPE.filters),
);

export const TELEPHONE: FrontEnd = {
  ...TELEPHONE_SHAPE,
  assumedMean: TELEPHONE_OF_WIDEBAND.map((row) => Math.round(dot(row, WIDEBAND.assumedMean) * 100) / 100),
};

export type Band = 'telephone' | 'wideband';

export const FRONT_ENDS: Readonly<Record<Band, FrontEnd>> = { telephone: TELEPHONE, wideband: WIDEBAND };

type Shape = Omit<FrontEnd, 'assumedMean'>;

/** The contents of `feat.params`. */
export function featureParameters({ filters, highestHz, cepstra, assumedMean }: FrontEnd): Record<string, string> {
  const stream = (index: number): string => `${index * cepstra}-${(index + 1) * cepstra - 1}`;
  return {
    '-lowerf': `${LOWEST_HZ}`,
    '-upperf': `${highestHz}`,
    '-nfilt': `${filters}`,
    '-ncep': `${cepstra}`,
    '-ceplen': `${cepstra}`,
    '-transform': 'dct',
    '-lifter': `${LIFTER}`,
    '-feat': '1s_c_d_dd',
    '-svspec': [0, 1, 2].map(stream).join('/'),
    '-agc': 'none',
    '-cmn': 'batch',
    '-varnorm': 'no',
    '-model': 'ptm',
    '-cmninit': assumedMean.map((value) => value.toFixed(2)).join(','),
  };
}

/** Frequency of a corner of the filters, counted from 0. Filter n reaches from corner n to corner n + 2. */
export function cornerHz({ filters, highestHz }: Pick<FrontEnd, 'filters' | 'highestHz'>, corner: number): number {
  const stepMel = (melOf(highestHz) - melOf(LOWEST_HZ)) / (filters + 1);
  return 700 * (10 ** ((melOf(LOWEST_HZ) + corner * stepMel) / 2595) - 1);
}

/** Converts log energies of the filters to cepstra. One row for each of the latter. */
export function dctOf({ filters, cepstra }: Shape): Float64Array[] {
  return Array.from({ length: cepstra }, (_, order) =>
    Float64Array.from({ length: filters }, (_, filter) => lifterOf(order) * basis(filters, order, filter)),
  );
}

/** Converts cepstra to log energies of the filters: the smooth curve that the cepstra describe. */
function inverseDctOf({ filters, cepstra }: Shape): Float64Array[] {
  return Array.from({ length: filters }, (_, filter) =>
    Float64Array.from({ length: cepstra }, (_, order) => basis(filters, order, filter) / lifterOf(order)),
  );
}

function basis(filters: number, order: number, filter: number): number {
  return Math.sqrt((order === 0 ? 1 : 2) / filters) * Math.cos((Math.PI / filters) * order * (filter + 0.5));
}

function lifterOf(order: number): number {
  return 1 + (LIFTER / 2) * Math.sin((order * Math.PI) / LIFTER);
}

function melOf(hz: number): number {
  return 2595 * Math.log10(1 + hz / 700);
}

function product(left: readonly Float64Array[], right: readonly Float64Array[]): Float64Array[] {
  return left.map((row) =>
    Float64Array.from(right[0]!, (_, column) =>
      row.reduce((sum, value, index) => sum + value * right[index]![column]!, 0),
    ),
  );
}

export function dot(row: Float64Array, values: ArrayLike<number>): number {
  return row.reduce((sum, weight, index) => sum + weight * values[index]!, 0);
}
