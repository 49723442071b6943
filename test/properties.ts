import { randomInt } from 'node:crypto';
import fastCheck from 'fast-check';

/**
 * fast-check with central seeds and run counts. Import this module instead: `import * as fc from '../properties.ts'`. A
 * failure prints its seed; CONTRIBUTING.md explains how to repeat it.
 */
export * from 'fast-check';

/** `npm run test:deep`: repeats each property with other seeds up to this count or time. */
const DEEP = { rounds: 20, forMs: 20_000 };
export const isDeep = process.env.PROPERTY_DEPTH === 'deep';

const given = process.env.PROPERTY_SEED === undefined ? null : Number(process.env.PROPERTY_SEED);
/** Seed of every property and sample in this file. */
const seed = given ?? randomInt(2 ** 31);
const path = process.env.PROPERTY_PATH;

/** Seed used by the current test; null: none. */
let lastSeed: number | null = null;

/** Prints the seed of a failed test, which fast-check omits for samples and timeouts. Called by `test/setup.ts`. */
export function reportSeed(hasFailed: boolean): void {
  if (hasFailed && lastSeed !== null) console.error(`PROPERTY_SEED=${lastSeed} repeats this failure.`);
  lastSeed = null;
}

/**
 * As in fast-check, with its type for both kinds of properties. Default runs: 100. A seed in the parameters applies to
 * the default suite only.
 */
export const assert = ((property: Property, parameters: fastCheck.Parameters<unknown> = {}) => {
  const rounds = roundsOf(parameters);
  if (property.isAsync()) return assertEach(property, rounds);
  for (const each of rounds) void fastCheck.assert(property, each);
}) as typeof fastCheck.assert;

type Property = fastCheck.IRawProperty<unknown>;

async function assertEach(property: Property, rounds: Iterable<fastCheck.Parameters<unknown>>): Promise<void> {
  for (const each of rounds) await fastCheck.assert(property, each);
}

function* roundsOf(parameters: fastCheck.Parameters<unknown>): Generator<fastCheck.Parameters<unknown>, void> {
  const startedMs = performance.now();
  const first = given ?? (isDeep ? null : parameters.seed) ?? seed;
  for (let round = 0; round < (isDeep ? DEEP.rounds : 1); round += 1) {
    if (round > 0 && performance.now() - startedMs > DEEP.forMs) return;
    lastSeed = first + round;
    yield { ...parameters, seed: lastSeed, ...(path !== undefined && { path }) };
  }
}

/**
 * As in fast-check, which for `unit: 'binary'` builds a table of all code points. In each process, that takes a second of
 * CPU time and a hundred megabytes.
 */
export function string(constraints: fastCheck.StringConstraints = {}): fastCheck.Arbitrary<string> {
  return fastCheck.string(constraints.unit === 'binary' ? { ...constraints, unit: codePoint } : constraints);
}

const SURROGATES = { from: 0xd800, count: 0x800 };
const codePoint = fastCheck.integer({ min: 0, max: 0x10ffff - SURROGATES.count }).map(
  (index) => String.fromCodePoint(index < SURROGATES.from ? index : index + SURROGATES.count),
  (text) => {
    if (typeof text !== 'string' || !/^[^\ud800-\udfff]$/u.test(text)) throw new TypeError('not one code point');
    const code = text.codePointAt(0)!;
    return code < SURROGATES.from ? code : code - SURROGATES.count;
  },
);

export function sample<Ts>(arbitrary: fastCheck.Arbitrary<Ts>, numRuns: number): Ts[] {
  lastSeed = seed;
  return fastCheck.sample(arbitrary, { numRuns, seed });
}
