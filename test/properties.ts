import { randomInt } from 'node:crypto';
import fastCheck from 'fast-check';

/**
 * fast-check, with one place that decides on seeds and numbers of runs. Import it in its stead:
 * `import * as fc from '../properties.ts'`. A failure prints its seed; CONTRIBUTING.md says how to repeat it.
 */
export * from 'fast-check';

/** `npm run test:deep`: each property again and again with other seeds, until this often or for this long. */
const DEEP = { rounds: 20, forMs: 20_000 };
export const isDeep = process.env.PROPERTY_DEPTH === 'deep';

const given = process.env.PROPERTY_SEED === undefined ? null : Number(process.env.PROPERTY_SEED);
/** Of every property and sample of this file. */
const seed = given ?? randomInt(2 ** 31);
const path = process.env.PROPERTY_PATH;

/** What the test that runs has drawn from; null: nothing. */
let lastSeed: number | null = null;

/**
 * Prints the seed that the test which ended has drawn from, if it failed: fast-check itself does not for samples and timeouts.
 * Called by `test/setup.ts`.
 */
export function reportSeed(hasFailed: boolean): void {
  if (hasFailed && lastSeed !== null) console.error(`PROPERTY_SEED=${lastSeed} repeats this failure.`);
  lastSeed = null;
}

/**
 * As that of fast-check, and of its type, which knows both kinds of properties. Default runs: 100. A seed in the
 * parameters is for the default suite alone.
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

/** As that of fast-check. */
export function sample<Ts>(arbitrary: fastCheck.Arbitrary<Ts>, numRuns: number): Ts[] {
  lastSeed = seed;
  return fastCheck.sample(arbitrary, { numRuns, seed });
}
